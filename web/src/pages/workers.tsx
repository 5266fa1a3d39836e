/** The machines that run jobs. */

import { UnitList } from "../parts/units/list";

export default () => <UnitList kind="workers" />;
