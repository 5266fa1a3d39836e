/* ---- replies of parked steps; one that nobody waits for changes nothing ---- */

inline answer(f, o, w) {
    if
    :: flow[f] == PARKED(STEP_OF(o)) || flow[f] == PARKED_ALL -> reply[f] = reply[f] | BIT(w)
    :: else
    fi
}

/* ---- the flow: attempt.asl.json ---- */

inline park(f, o) { flow[f] = PARKED(o); reply[f] = 0; to_acquire[(f) * 3 + (o)] = 1; }

#ifdef TWINS
#define FIRST(f) (NEEDS(JOB_OF(f), 1) -> 1 : 0)
#define AFTER(f, o) 0
#elif defined(FILE_ORDER)
#define FIRST(f) (JOB_OF(f) % 2 && NEEDS(JOB_OF(f), 2) -> 2 : (NEEDS(JOB_OF(f), 1) -> 1 : (NEEDS(JOB_OF(f), 2) -> 2 : 0)))
#define AFTER(f, o) ((o) == 1 -> (JOB_OF(f) % 2 == 0 && NEEDS(JOB_OF(f), 2) -> 2 : 0) : \
    (JOB_OF(f) % 2 && NEEDS(JOB_OF(f), 1) -> 1 : 0))
#else
#define FIRST(f) (NEEDS(JOB_OF(f), 1) -> 1 : (NEEDS(JOB_OF(f), 2) -> 2 : 0))
#define AFTER(f, o) ((o) == 1 && NEEDS(JOB_OF(f), 2) -> 2 : 0)
#endif

inline begin(f) {
    check_alone(f);
#ifdef PARALLEL
    flow[f] = PARKED_ALL;
    for (i : 0 .. 2) {
        if
        :: NEEDS(JOB_OF(f), i) -> to_acquire[(f) * 3 + i] = 1
        :: else
        fi
    }
#else
    k = FIRST(f);
    park(f, k);
#endif
}

inline go_on(f) {
    if
    :: flow[f] == PARKED(0) -> flow[f] = ENDED
    :: flow[f] == PARKED(1) || flow[f] == PARKED(2) -> k = AFTER(f, (flow[f] - 1)); park(f, k)
    :: flow[f] == PARKED_ALL && lease[(f) * 3] == READY && (!NEEDS(JOB_OF(f), 1) || lease[(f) * 3 + 1] == READY) &&
        (!NEEDS(JOB_OF(f), 2) || lease[(f) * 3 + 2] == READY) -> flow[f] = ENDED
    :: else
    fi;
    reply[f] = 0;
}

inline give_up(f, w) { flow[f] = SETTLING; why[f] = w; reply[f] = 0; }
