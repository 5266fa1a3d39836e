"""Job files that are submitted together: their order, and what is wrong with them as a whole."""

from __future__ import annotations

from penstock.domain.jobfile import JobFile, Problem, Problems, name_in, parse
from penstock.domain.jobfile.sets import Member, Unfit, arrange, arrange_fit, name_of


def file(name: str, *after: str, enable: bool = True, path: str = "") -> JobFile:
    lines = [f'name = "{name}"', 'variety = "basic"', *([] if enable else ["enable = false"])]
    for number, job in enumerate(after):
        lines += [f"[dependencies.d{number}]", f'job = "{job}"']
    found = parse("\n".join(["#!/bin/sh", *(f"#: {line}" for line in lines), "true"]), path or f"{name}.sh")
    assert isinstance(found, JobFile), str(found)
    return found


def names(*files: JobFile) -> list[str]:
    found = arrange(files)
    assert not isinstance(found, Problems), str(found)
    return [member.name for member in found]


def problems(*files: JobFile) -> list[str]:
    found = arrange(files)
    assert isinstance(found, Problems)
    return [str(problem) for problem in found.items]


def test_each_comes_after_those_that_it_waits_for() -> None:
    order = names(file("sign", "a", "b"), file("b", "fetch"), file("a", "fetch"), file("fetch"), file("lint"))
    assert set(order) == {"sign", "a", "b", "fetch", "lint"}
    for earlier, later in (("fetch", "a"), ("fetch", "b"), ("a", "sign"), ("b", "sign")):
        assert order.index(earlier) < order.index(later)


def test_a_plain_script_is_called_by_its_file_and_a_disabled_job_is_none() -> None:
    plain = parse("#!/bin/sh\ntrue\n", "dir/plain.sh")
    assert isinstance(plain, JobFile)
    assert names(plain, file("off", enable=False), file("last", "plain")) == ["plain", "last"]
    assert name_of(JobFile("/", "")) == "job"
    assert arrange([plain]) == (Member("plain", plain),)


def test_two_jobs_of_one_name() -> None:
    found = problems(file("a", path="x.sh"), file("a", path="y.sh"))
    assert found == ["y.sh:2:11: the job of x.sh is called `a` too (give each job a name of its own)"]
    plain = parse("#!/bin/sh\ntrue\n", "dir/a.sh")
    assert isinstance(plain, JobFile)
    assert problems(file("a", path="x.sh"), plain)[0].startswith("dir/a.sh:1:1: ")


def test_names_that_are_not_there() -> None:
    found = problems(file("test", "biuld", "off"), file("build"), file("off", enable=False))
    assert found == [
        "test.sh:5:10: there is no job `biuld` in this folder "
        "(did you mean `build`?; every `.sh` file of the folder is a job of the set)",
        "test.sh:7:10: the job `off` is disabled (enable it, or do not depend on it)",
    ]


def test_a_circle_is_spelled_out_at_each_of_its_places() -> None:
    found = problems(file("a", "b"), file("b", "x", "c"), file("c", "a"), file("x"), file("after", "a"))
    assert len(found) == 3
    (told,) = {problem.partition(": these jobs wait for each other: ")[2].partition(" (")[0] for problem in found}
    around = told.split(" -> ")
    assert around[0] == around[-1]
    assert set(around) == {"a", "b", "c"}
    assert all(f"{one} -> {other}" in f"{told} -> {around[1]}" for one, other in ("ab", "bc", "ca"))
    places = {"a": "a.sh:5:10", "b": "b.sh:7:10", "c": "c.sh:5:10"}
    assert [problem.partition(": ")[0] for problem in found] == [places[name] for name in around[:-1]]


def fit(*files: JobFile, unfit: tuple[Unfit, ...] = ()) -> tuple[list[str], dict[str, str]]:
    """The names of the jobs that can be run, and by name the first problem of each file that cannot."""
    members, wrong = arrange_fit(files, unfit)
    assert len({each.name for each in (*members, *wrong)}) == len(members) + len(wrong)
    return [member.name for member in members], {each.name: each.problems[0].message for each in wrong}


def test_files_that_do_not_fit_leave_the_others() -> None:
    assert fit(file("b", "a"), file("a")) == (["a", "b"], {})
    assert fit(file("a", "nobody"), file("after a", "a"), file("good")) == (
        ["after a", "good"], {"a": "there is no job `nobody` in this folder"},
    )  # fmt: skip


def test_a_file_that_fits_no_more_without_another_is_found_too() -> None:
    one, other = file("x", "y"), file("y", "x")
    members, wrong = fit(one, other, file("p", "q"), file("q", "p"), file("z", "x", "p"), file("off", enable=False))
    assert members == ["z"]
    assert set(wrong) == {"x", "y", "p", "q"}
    assert all(said.startswith("these jobs wait for each other: ") for said in wrong.values())


def test_jobs_may_depend_on_those_of_unfit_files() -> None:
    bad = Unfit("bad", "bad.sh", (Problem("bad.sh", 1, 1, "the file is empty"),))
    assert fit(file("last", "bad"), unfit=(bad,)) == (["last"], {"bad": "the file is empty"})
    assert fit(file("last", "off"), file("off", enable=False)) == ([], {"last": "the job `off` is disabled"})
    many = parse(
        "#!/bin/sh\n#: name = 't'\n#: variety = 'basic'\n#: dependencies.n.job = 'nobody'\n#: matrix.n = ['1', '2']\n",
        "t.sh",
    )
    assert isinstance(many, JobFile)
    members, wrong = fit(many, file("one", "t (1)"), file("both", "t"))
    assert (members, set(wrong)) == (["one", "both"], {"t"})


def test_no_two_checks_have_one_name() -> None:
    bad = (Problem("x", 1, 1, "no"),)
    unfit = (Unfit("a", "a.sh", bad), Unfit("a", "b.sh", bad), Unfit("a", "b.sh", bad))
    members, wrong = fit(
        file("b.sh", path="c.sh"), file("b.sh (2)", path="d.sh"), file("c"), file("c", path="e.sh"), unfit=unfit
    )
    assert members == ["b.sh", "b.sh (2)", "c"]
    assert list(wrong) == ["a", "b.sh (3)", "b.sh (4)", "e.sh"]


def test_what_the_job_of_a_bad_file_is_called() -> None:
    head = "#!/bin/sh\n#: variety = 'basic'\n"
    assert name_in(f"{head}#: name = 'a b'\n#: taget = 1\n", "x/f.sh") == "a b"
    for text in ("", head, f"{head}#: name = 1\n", f"{head}#: name = ''\n", f"{head}#: name = 'a\n", b"\xff"):
        assert name_in(text, "x/f.sh") == "f"
    assert name_in(f"{head}#: name = 'a'\n#: x = {'[' * 99}{']' * 99}\n", "x/f.sh") == "f"
    assert name_in("", "x/\x1b.sh") == "?"
    assert name_in("", "/") == "job"
    assert name_in("", f"x/{'y' * 200}.sh") == "y" * 125 + "..."
