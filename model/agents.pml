/* ---- the agent's calls; it repeats one until it is answered ---- */

#ifdef HELLO_ANY_STATE
#define WELCOME(f) true
#else
#define WELCOME(f) (job[JOB_OF(f)] == ACQUIRING)
#endif

/* With everything at once a worker may boot before its resources are there: its agent waits with its call. */
#ifdef PARALLEL
#define MAY_CALL(f) ((!NEEDS(JOB_OF(f), 1) || lease[(f) * 3 + 1] == READY) && (!NEEDS(JOB_OF(f), 2) || lease[(f) * 3 + 2] == READY))
#else
#define MAY_CALL(f) true
#endif

inline hello(f, goes_on) {
    l = (f) * 3;
    j1 = JOB_OF(f);
    if
    :: unit[l] == UP && attempt[j1] == ATTEMPT_OF(f) && report[j1] == NOTHING ->
        if :: goes_on -> agent[f] = RUNS; answer(f, 0, NOTHING) :: else fi
    :: unit[l] == CREATING && attempt[j1] == ATTEMPT_OF(f) && lease[l] == GRANTED && !cancelled[j1] && WELCOME(f) ->
        check_alone(f);
        unit[l] = UP; lease[l] = READY; job[j1] = RUNNING; version[j1]++; moved();
#ifndef MADE_LATE
        made[l] = 1;
#endif
        check_settled(j1);
        if :: goes_on -> agent[f] = RUNS; answer(f, 0, NOTHING) :: else fi
    :: else -> agent[f] = STOPPED
    fi
}

#define IS_AT_WORK(f) (attempt[JOB_OF(f)] == ATTEMPT_OF(f) && job[JOB_OF(f)] == RUNNING && unit[(f) * 3] == UP)

inline finish(f, goes_on) {
    j1 = JOB_OF(f);
    if
    :: IS_AT_WORK(f) ->
        if :: report[j1] == NOTHING -> report[j1] = DONE :: else fi;
        for (i : 0 .. 2) { end_lease((f) * 3 + i) };
        conclude(j1, NOTHING);
        moved();
        check_slots();
        if :: goes_on -> put_back(f); agent[f] = STOPPED :: else fi
    :: else -> agent[f] = STOPPED
    fi
}

/* The report of a job that publishes: it is written first, and its end is a commit of its own. */
inline write_report(f, goes_on) {
    j1 = JOB_OF(f);
    if
    :: IS_AT_WORK(f) ->
        if :: report[j1] == NOTHING -> report[j1] = DONE; version[j1]++; moved() :: else fi;
        end_by_report(f, goes_on)
    :: else -> agent[f] = STOPPED
    fi
}

/* ---- the user's call ---- */

inline cancel(j, goes_on) {
    cancelled[j] = 1; version[j]++; moved();
    if :: goes_on -> to_stop[j] = 1 :: else fi
}

inline stop_waiting(j) {
    f1 = (j) * ATTEMPTS + attempt[j];
    for (i : 0 .. 2) {
        if :: lease[f1 * 3 + i] == WAITING || lease[f1 * 3 + i] == GRANTED -> fail_step(f1, i, CANCELLED) :: else fi
    }
}
