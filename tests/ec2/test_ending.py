"""What the ec2 factory finds, ends and tells. [UNIT-1] [UNIT-2]"""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.domain.units.units import CleanProof
from penstock.drivers.factories.ec2.factory import EVIDENCE_CHARS
from penstock.kernel.errors import Misconfigured, RateLimited
from penstock.ports import EvidenceDriver, NotYet
from tests.ec2.fake import Ec2
from tests.ec2.helpers import MORE, NOW, OTHER, WORKER, clean, factory, only, order


class TestEnding:
    """clean and list."""

    def test_a_machine_is_clean_when_it_is_really_gone(self, ec2: Ec2) -> None:
        """UNIT-2: what was asked to end is not yet at its end."""
        ec2.dying = 20
        factory(ec2).create(order())
        first = factory(ec2).destroy(WORKER, NOW)
        assert isinstance(first, NotYet)
        assert first.reason == "its machine is shutting down"
        assert list(factory(ec2).list()) == [WORKER]
        proof = clean(factory(ec2))
        assert only(ec2).id in proof.checked
        assert ec2.now >= 20
        assert list(factory(ec2).list()) == []
        assert [name for name, _ in ec2.calls].count("TerminateInstances") == 1
        terminated = next(params for name, params in ec2.calls if name == "TerminateInstances")
        assert terminated["SkipOsShutdown"], "nothing on it is worth the minutes"

    def test_volumes_that_outlive_their_machine_do_not_outlive_the_worker(self, ec2: Ec2) -> None:
        """UNIT-1: an image may say that its volumes stay."""
        ec2.keep_volumes, ec2.dying = True, 0
        factory(ec2).create(order())
        factory(ec2).destroy(WORKER, NOW)
        leaving = factory(ec2).destroy(WORKER, NOW)
        assert isinstance(leaving, NotYet)
        assert leaving.reason == "its volumes are being deleted"
        assert ec2.volumes == {}
        assert "no machine or volume" in clean(factory(ec2)).checked

    def test_who_lists_nothing_says_that_lists_lag(self, ec2: Ec2) -> None:
        """UNIT-1: how long ago something may have been launched, the core knows, and not the age of an id."""
        ec2.lag = 30
        factory(ec2).create(order())
        proof = factory(ec2).destroy(WORKER, NOW + timedelta(hours=1))
        assert isinstance(proof, CleanProof)
        assert (proof.lag, len(list(ec2.alive()))) == (300, 1)
        assert "none was listed" in proof.checked
        ec2.now += 30
        assert clean(factory(ec2)).lag == 0, "what was seen to end has ended"
        assert list(ec2.alive()) == []

    def test_what_vanishes_between_list_and_end_is_fine(self, ec2: Ec2) -> None:
        factory(ec2).create(order())
        ec2.fail("TerminateInstances", "InvalidInstanceID.NotFound")
        clean(factory(ec2))
        ec2.keep_volumes = True
        factory(ec2).create(order(OTHER))
        ec2.fail("DeleteVolume", "InvalidVolume.NotFound")
        clean(factory(ec2), OTHER)

    def test_an_end_that_fails_halfway_is_gone_on_with(self, ec2: Ec2) -> None:
        factory(ec2).create(order())
        ec2.fail("TerminateInstances", "RequestLimitExceeded", status=503)
        with pytest.raises(RateLimited):
            factory(ec2).destroy(WORKER, NOW)
        assert list(factory(ec2).list()) == [WORKER]
        clean(factory(ec2))

    def test_a_machine_that_must_not_end_is_the_operators(self, ec2: Ec2) -> None:
        factory(ec2).create(order())
        ec2.fail("TerminateInstances", "OperationNotPermitted", "The instance may not be terminated")
        with pytest.raises(Misconfigured, match="may not be terminated"):
            factory(ec2).destroy(WORKER, NOW)

    def test_lists_are_read_to_their_last_page(self, ec2: Ec2) -> None:
        for worker in MORE:
            factory(ec2).create(order(worker))
        assert list(factory(ec2).list()) == MORE
        assert ec2.page < len(MORE)

    def test_nothing_of_anybody_elses_is_listed_or_touched(self, ec2: Ec2) -> None:
        """UNIT-1: not another deployment's, not another factory's, not a stranger's, not even by our worker's id."""
        factory(ec2, site="Penstock.us-east-1").create(order())
        factory(ec2, name="gpu").create(order(OTHER))
        ec2.client("eu-west-1").run_instances(MinCount=1, MaxCount=1, ImageId="ami-0a", InstanceType="m7g.large")
        ours = factory(ec2)
        assert list(ours.list()) == []
        clean(ours, WORKER)
        assert len(list(ec2.alive())) == 3


class TestEvidence:
    """What is told of a machine that never said hello."""

    def test_a_machine_that_died_at_boot_says_why(self, ec2: Ec2) -> None:
        made = factory(ec2)
        made.create(order())
        name = only(ec2).id
        ec2.end(name, "Client.VolumeLimitExceeded: Volume limit exceeded")
        ec2.consoles[name] = "x" * EVIDENCE_CHARS + "\nkernel panic\n"
        ec2.now += 10
        told = made.evidence(WORKER)
        assert told
        assert f"{name} (m7g.large, eu-west-1a) is terminated: Client.VolumeLimitExceeded" in told
        assert told.endswith("kernel panic")
        assert len(told) < EVIDENCE_CHARS + 300

    def test_types_that_tell_only_what_was_at_boot(self, ec2: Ec2) -> None:
        ec2.is_nitro = False
        made = factory(ec2)
        made.create(order())
        ec2.consoles[only(ec2).id] = "at boot"
        assert "at boot" in str(made.evidence(WORKER))

    def test_there_may_be_none(self, ec2: Ec2) -> None:
        assert factory(ec2).evidence(WORKER) is None
        factory(ec2).create(order())
        assert "its console is empty" in str(factory(ec2).evidence(WORKER))
        ec2.fail("GetConsoleOutput", "UnauthorizedOperation")
        with pytest.raises(Misconfigured):
            factory(ec2).evidence(WORKER)

    def test_the_core_can_see_that_it_may_ask(self, ec2: Ec2) -> None:
        assert isinstance(factory(ec2), EvidenceDriver)
