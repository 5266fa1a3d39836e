/* The steps. Each inline is one AWS call, or a decision and the conditional commit that validates all it has read;
 * docs/internals/model.md names the function that does it. Where a message is sent after a commit, `goes_on` says whether the
 * handler lived to send it. */

inline moved() { rounds = 0; }

#include "flow.pml"
#include "acquiring.pml"
#include "units.pml"
#include "agents.pml"
#include "settling.pml"
