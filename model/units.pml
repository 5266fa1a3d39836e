/* ---- units: what the driver does, and what is written of it ---- */

inline create(l0) {
    if
    :: !exists[l0] ->
        exists[l0] = 1;
        if :: ORDER_OF(l0) == 0 -> agent[FLOW_OF(l0)] = BOOTS :: else fi
    :: else
    fi
}

#define FIRST_OF(l0) (FLOW_OF(l0) * 3 + STEP_OF(ORDER_OF(l0)))

inline advance_answer(l0) {
    if
    :: unit[l0] == UP && ALL_READY(FIRST_OF(l0)) -> answer(FLOW_OF(l0), ORDER_OF(l0), NOTHING)
    :: else
    fi
}

inline advance_make(l0, goes_on) {
    if
    :: unit[l0] == CREATING && !made[l0] && ORDER_OF(l0) == 0 -> made[l0] = 1; moved()
    :: unit[l0] == CREATING && !made[l0] && ORDER_OF(l0) != 0 && lease[l0] == GRANTED ->
        made[l0] = 1; unit[l0] = UP; lease[l0] = READY; version[JOB_OF(FLOW_OF(l0))]++; nudged[JOB_OF(FLOW_OF(l0))] = 0;
        moved();
        if :: goes_on -> advance_answer(l0) :: else fi
    :: else
    fi
}

inline advance_lose(l0, goes_on) {
    f1 = FLOW_OF(l0);
    j1 = JOB_OF(f1);
    if
    :: unit[l0] == CREATING -> if :: goes_on -> fail_step(f1, 0, LOST) :: else fi
    :: unit[l0] == UP && job[j1] == RUNNING && attempt[j1] == ATTEMPT_OF(f1) ->
        if :: report[j1] == NOTHING -> report[j1] = LOST; version[j1]++; moved() :: else fi;
        end_by_report(f1, goes_on)
    :: else
    fi
}

/* Whose turn it is to be put back: the worker's, then the resources' in reverse order. OFF for nobody's. */
inline next_release(f) {
    turn = OFF;
    if
    :: lease[(f) * 3] == RELEASING -> turn = (f) * 3
    :: else ->
        if
        :: lease[(f) * 3 + 2] == RELEASING -> turn = (f) * 3 + 2
        :: else -> if :: lease[(f) * 3 + 1] == RELEASING -> turn = (f) * 3 + 1 :: else fi
        fi
    fi
}

inline clean(l0) {
#ifdef SERVE_FIRST
    to_serve[POOL_OF(l0)] = 1;
#endif
    exists[l0] = 0;
    if :: ORDER_OF(l0) == 0 -> agent[FLOW_OF(l0)] = STOPPED :: else fi
}

#ifdef NO_STATE
#define STILL_DIRTY(l0) true
#else
#define STILL_DIRTY(l0) (unit[l0] == DIRTY)
#endif
#ifdef NO_FENCE
#define STILL_HELD(l0) (holder[slot_of[l0]] != 0)
#else
#define STILL_HELD(l0) (holder[slot_of[l0]] == l0 + 1 && fence[slot_of[l0]] == fence_of[l0])
#endif

inline release(l0, goes_on) {
    f1 = FLOW_OF(l0);
    if
    :: STILL_DIRTY(l0) ->
        if :: STILL_HELD(l0) -> holder[slot_of[l0]] = 0 :: else fi;
        unit[l0] = GONE;
        if :: lease[l0] == RELEASING -> lease[l0] = RELEASED :: else fi;
        moved();
        check_slots()
    :: else
    fi;
    if
    :: goes_on ->
#ifndef SERVE_FIRST
        to_serve[POOL_OF(l0)] = 1;
#endif
        next_release(f1);
        if :: turn != OFF -> to_advance[turn] = 1 :: else fi;
        if :: ORDER_OF(l0) == 0 -> to_start[JOB_OF(f1)] = 1 :: else fi
    :: else
    fi
}
