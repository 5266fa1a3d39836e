/** The things that jobs have besides a machine: benches, licences, credentials. */

import { UnitList } from "../parts/units/list";

export default () => <UnitList kind="resources" />;
