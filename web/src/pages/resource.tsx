/** One thing that jobs have besides a machine. */

import { UnitDetails } from "../parts/units/details";

export default () => <UnitDetails kind="resources" />;
