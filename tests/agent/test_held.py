"""An agent whose worker is held changes nothing on its machine, and polls until the hold ends. [UNIT-3]"""

import pytest

HELD = {"idle": True, "seconds": 0.05, "lease_seconds": 60, "held_seconds": 60}
FREE = {"idle": True, "seconds": 0.05, "lease_seconds": 60}
SCRIPT = 'echo precious > "$PENSTOCK_WORK/evidence"; sleep 300 & echo $!'


def tell(job, **held):
    """Let the answers to a job's finish and heartbeats say that it is held."""
    for call in ("_finish", "_heartbeat"):
        answer = getattr(job.plane, call)
        setattr(job.plane, call, lambda body, answer=answer: (200, {**answer(body)[1], **held}))


def test_a_held_agent_neither_cleans_nor_ends(worker):
    job = worker(script=SCRIPT, reuse=True)
    tell(job, held_seconds=60)
    job.plane.answer_next_hellos(HELD)
    agent = job.start()
    job.plane.wait_for(lambda: len(job.plane.hellos) > 3)
    assert (job.root / "work" / "evidence").read_text() == "precious\n"
    assert agent.poll() is None
    asked = job.plane.hellos[1:]
    assert {(ask["previous"], ask["token"]) for ask in asked} == {(job.plane.hellos[0]["token"],) * 2}
    assert not [ask for ask in asked if "cleaned" in ask], "it must not say that it is clean"


def test_it_cleans_when_it_is_released(worker):
    job = worker(script=SCRIPT, reuse=True)
    tell(job, held_seconds=60)
    job.plane.answer_next_hellos(HELD, HELD, FREE, 410)
    assert job.run() == 0, job.log()
    assert not (job.root / "work" / "evidence").exists()
    assert ["cleaned" in ask for ask in job.plane.hellos] == [False, False, False, False, True]


def test_an_agent_that_is_not_reused_ends_when_it_is_released(worker):
    job = worker(script=SCRIPT)
    tell(job, held_seconds=60)
    job.plane.answer_next_hellos(HELD, HELD, 410)
    assert job.run() == 0, job.log()
    assert len(job.plane.hellos) == 4
    assert (job.root / "work" / "evidence").exists(), "its machine is destroyed, not cleaned"


@pytest.mark.parametrize(("status", "code"), [(410, 0), (403, 1)])
def test_an_agent_that_is_told_to_stop_asks_first_whether_it_is_held(worker, status, code):
    job = worker(lambda endpoint, count: status if endpoint == "heartbeat" else None, script="sleep 300")
    job.plane.answer_next_hellos(HELD, 410)
    assert job.run() == code, job.log()
    assert len(job.plane.hellos) == 3
    assert "an operator holds this worker" in job.log()


def test_an_unreachable_service_does_not_end_a_hold(worker):
    job = worker(lambda endpoint, count: "drop" if endpoint == "hello" and 1 < count < 8 else None)
    tell(job, held_seconds=60)
    job.plane.answer_next_hellos(HELD, 410)
    assert job.run() == 0, job.log()
    assert "try 5" in job.log()
    assert [("previous" in ask) for ask in job.plane.hellos] == [False, True, True]


def test_an_agent_without_connection_ends_after_its_hold(worker):
    job = worker(lambda endpoint, count: "drop" if endpoint == "hello" and count > 1 else None)
    tell(job, held_seconds=0.1)
    assert job.run() in (0, 1)
    assert len(job.plane.hellos) == 1
