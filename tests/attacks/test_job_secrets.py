"""What a job did with a secret that only it may know, so that everybody who sees the job reads it. [SEC-1]"""

from tests.agent.conftest import agent, forks, swift, worker

__all__ = ["agent", "forks", "swift", "worker"]

PASSWORD = "Tr0ub4dor&3/+x"
LENT = {"db": {"type": "database", "metadata": {"password": PASSWORD, "host": "here"}, "public": ["host"]}}


def test_a_resources_password_is_put_into_the_store_in_clear(worker):
    script = (
        'set -e; p=$(bmat resource get db password); bmat store put plain "$p"; '
        'bmat store put url "postgres://u:$p@here/db"; bmat store put host "$(bmat resource get db host)"'
    )
    job = worker(script=script, resources=LENT)
    assert job.finish()["result"] == "succeeded", job.plane.lines()
    assert job.plane.store == {
        "plain": (PASSWORD, True), "url": (f"postgres://u:{PASSWORD}@here/db", True), "host": ("here", False),
    }  # fmt: skip
