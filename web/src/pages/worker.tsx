/** One machine that runs jobs. */

import { UnitDetails } from "../parts/units/details";

export default () => <UnitDetails kind="workers" />;
