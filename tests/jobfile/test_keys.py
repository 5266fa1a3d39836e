"""One row per way to get a key or its value wrong: where it is reported, what is said, what is advised."""

import pytest

from penstock.domain.jobfile import JobFile, Post, check_asked, check_inputs, parse
from penstock.domain.jobfile.machine import Machine, Size
from penstock.domain.pools.choices import Choice, Placement
from penstock.kernel import limits
from tests.jobfile.helpers import below, only

IMAGE = f"docker.io/library/postgres@sha256:{'ab' * 32}"
KEY_ROWS = [
    # unknown keys
    ('taget = "x"', 4, 4, "unknown key `taget`", "did you mean `target`?"),
    ('Skip-Clone = "x"', 4, 4, "unknown key `Skip-Clone`", "did you mean `skip_clone`?"),
    ("enabled = true", 4, 4, "unknown key `enabled`", 'use "enable" to disable a job'),
    ("disable = true", 4, 4, "unknown key `disable`", 'use "enable" to disable a job'),
    ("disabled = true", 4, 4, "unknown key `disabled`", 'use "enable" to disable a job'),
    ("[zzz]", 4, 5, "unknown key `zzz`", "known here: name, variety, enable"),
    ('"\\u001b[31m" = 1', 4, 4, "unknown key `?[31m`", "known here"),
    # text
    ("target = 3", 4, 13, "`target` wants a string, not a whole number", "double quotes"),
    ("target = [1]", 4, 13, "`target` wants a string, not a list", ""),
    ("target = 2026-01-01", 4, 13, "not a date or time", "double quotes"),
    ('target = " "', 4, 13, "`target` is empty", ""),
    (f'target = "{"x" * 129}"', 4, 13, "has 129 characters; it may have at most 128", ""),
    ('target = "a\\nb"', 4, 13, "control character U+000A", ""),
    # hosts
    ("host = 'lab-1'", 4, 11, "`host` wants a table, not a string", 'like { labels = "rack == 4" }'),
    ("host = {}", 4, 11, "`host` has neither `labels` nor `thing`", 'like { labels = "rack == 4" }'),
    ("host = { labels = 'rack ==' }", 4, 22, "`host.labels`: wanted a value after `==`", "board == gimlet"),
    ("host = { thing = 'a b' }", 4, 21, "`a b` is not a thing's name", "bench-3"),
    ("host = { thing = 'a', labels = 'b' }", 4, 35, "a thing that is named has the labels", "keep either"),
    ("host = { count = 2 }", 4, 13, "unknown key `count`", "known here: labels, thing"),
    # images
    ("image = 3", 4, 12, "`image` wants an image by its digest, not a whole number", ""),
    ('image = "rust:1.85"', 4, 12, "`image`: `rust:1.85` does not name an image by its digest", "name@sha256:"),
    # services
    ("services = 1", 4, 15, "`services` wants tables like [services.db]", ""),
    ("[services.db]", 4, 14, "`services.db` has no `image`", "like [services.db] with image"),
    (f"[services.DB]\nimage = '{IMAGE}'", 4, 14, "`DB` is not the name of a service", "lower-case letters"),
    (f"[services.localhost]\nimage = '{IMAGE}'", 4, 14, "no service can be called `localhost`", "host"),
    ("[services.db]\nimage = 'postgres:17'", 5, 12, "`services.db.image`: `postgres:17` does not name", "sha256"),
    (f"[services.db]\nimage = '{IMAGE}'\nports = [1]", 6, 4, "unknown key `ports`", ""),
    (f"[services.db]\nimage = '{IMAGE}'\nenv = {{ A = 1 }}", 6, 16, "`services.db.env.A` wants a string", ""),
    (f"[services.db]\nimage = '{IMAGE}'\nready = ['x']", 6, 12, "`services.db.ready` wants a string", ""),
    (f"[services.db]\nimage = '{IMAGE}'\nready = '{'x' * 1025}'", 6, 12, "it may have at most 1024", ""),
    (
        "".join(f"[services.s{n}]\nimage = '{IMAGE}'\n" for n in range(6)),
        14,
        14,
        "`services` has 6 entries; it may have at most 5",
        "",
    ),
    (
        f"[services.db]\nimage = '{IMAGE}'\nenv = {{ A = '{'x' * 8100}' }}",
        4,
        5,
        "bytes as JSON; it may take at most 8192",
        "",
    ),
    # what the machine must have
    ("machine = 4", 4, 14, "`machine` wants a table, not a whole number", "cpus = 4"),
    ("machine = { cpu = 4 }", 4, 16, "unknown key `cpu`", "did you mean `cpus`?"),
    ('machine = { memory = "16GB" }', 4, 25, "`machine.memory`: `16GB` is not a size like 16GiB", "MiB, GiB, TiB"),
    ("[machine]\ncpus = 0", 5, 11, "`machine.cpus` must be from 1 to 4096", ""),
    # flags and numbers
    ('skip_clone = "yes"', 4, 17, "`skip_clone` wants true or false, not a string", "without quotes"),
    ("enable = 1", 4, 13, "`enable` wants true or false, not a whole number", ""),
    ("priority = 101", 4, 15, "`priority` must be from -100 to 100", ""),
    ("priority = -101", 4, 15, "`priority` must be from -100 to 100", ""),
    ('priority = "1"', 4, 15, "wants a whole number from -100 to 100, not a string", "without quotes"),
    ("priority = 0.5", 4, 15, "not a number with a fraction", ""),
    ("retries = true", 4, 14, "`retries` wants a whole number from 0 to 10, not true or false", ""),
    ("retries = 11", 4, 14, "`retries` must be from 0 to 10", ""),
    ("retries = 0x" + "f" * 9999, 4, 14, "`retries` must be from 0 to 10", ""),
    # durations
    ('timeout = "soon"', 4, 14, "`timeout`: wanted a duration", ""),
    ("timeout = 1.5", 4, 14, "`timeout`: wanted a duration", ""),
    ("hold_on_failure = 0", 4, 22, "`hold_on_failure` must be from 1 second to 7 days", ""),
    ("timeout = 0", 4, 14, "`timeout` must be from 1 second to 7 days", ""),
    ('timeout = "8d"', 4, 14, "`timeout` must be from 1 second to 7 days", ""),
    ('on_failure = "stop"', 4, 17, "`on_failure` cannot be `stop`", '"retry"'),
    ("on_failure = true", 4, 17, "`on_failure` wants a string", ""),
    # output rules
    ('output_rules = "/a"', 4, 19, "`output_rules` wants a list of output rules, not a string", '["/a"]'),
    ("output_rules = true", 4, 19, "not true or false", ""),
    ('output_rules = [\n"/a",\n"b"]', 6, 4, "`output_rules`: wanted sigil/absolute path", "a rule is"),
    ('output_rules = ["/a", 3]', 4, 26, "an entry of `output_rules` wants a string", ""),
    (f'output_rules = ["/{"x" * 1024}"]', 4, 20, "has 1025 characters; it may have at most 1024", ""),
    ("output_rules = [" + '"/a",' * 101 + "]", 4, 520, "has 101 entries; it may have at most 100", ""),
    # what runs after the script
    ("post = 1", 4, 11, "`post` wants a list of [[post]] tables, not a whole number", ""),
    ("[[post]]\nname = 'a'\non = 'always'", 4, 6, "an entry of `post` has no `script`", "like [[post]] with"),
    ("[[post]]\nname = 'a'\nscript = 'true'", 4, 6, "an entry of `post` has no `on`", "like [[post]] with"),
    ("[[post]]\non = 'always'\nscript = 'true'", 4, 6, "an entry of `post` has no `name`", "like [[post]] with"),
    ("[[post]]\nname = 'a b'\non = 'always'\nscript = 'x'", 5, 11, "`a b` is not a name", "1 to 48"),
    ("[[post]]\nname = 'a'\non = 'never'\nscript = 'x'", 6, 9, "`post.on` cannot be `never`", "success, failure"),
    ("[[post]]\nname = 'a'\non = 1\nscript = 'x'", 6, 9, "`post.on` wants a string, not a whole number", "always"),
    (
        "[[post]]\nname = 'a'\non = 'always'\nscript = ['x']",
        7,
        13,
        "`post.script` wants a script, not a list",
        "quotes",
    ),
    ("[[post]]\nname = 'a'\non = 'always'\nscript = ' '", 7, 13, "`post.script` is empty", ""),
    ("[[post]]\nname = 'a'\non = 'always'\nscript = \"\\u0000\"", 7, 13, "holds the character U+0000", ""),
    ("[[post]]\nname = 'a'\non = 'always'\nscript = 'x'\nrun = 1", 8, 4, "unknown key `run`", "known here: name, on"),
    ("[[post]]\nname = 'a'\non = 'always'\nscript = 'x'\n" * 2, 9, 11, "there is a post `a` already", "its own name"),
    # what is not available yet is checked all the same
    ("rust_toolchain = 1.85", 4, 21, "`rust_toolchain` wants true, false or a channel", ""),
    ('rust_toolchain = ""', 4, 21, "`rust_toolchain` is empty", ""),
    ('access_repos = ["a/b", "c"]', 4, 27, "`c` is not a repository", 'like "owner/name"'),
    ("access_repos = [1]", 4, 20, "an entry of `access_repos` wants a repository, not a whole number", ""),
    ('dependencies = ["a"]', 4, 19, "`dependencies` wants tables like [dependencies.build], not a list", ""),
    ('dependencies.x = "y"', 4, 21, "`dependencies.x` wants a table, not a string", 'job = "name of'),
    ("[dependencies.x]", 4, 18, "`dependencies.x` has no `job`", "like [dependencies.build]"),
    ("[dependencies.x]\njob = 1", 5, 10, "`dependencies.x.job` wants a string", ""),
    ("[dependencies.'x/y']\njob = 'b'", 4, 18, "no `/` in a dependency's name", "/input"),
    ("[dependencies.'..']\njob = 'b'", 4, 18, "`dependencies...` cannot be a dependency's name", "255 bytes"),
    (f"[dependencies.'{'ß' * 128}']\njob = 'b'", 4, 18, "cannot be a dependency's name", "255 bytes"),
    ("[dependencies.x]\njob = 'b'\non = 'failed'", 6, 9, "cannot be `failed`", "success, failure, always"),
    ("[dependencies.x]\njob = 'b'\non = 1", 6, 9, "`dependencies.x.on` wants a string", ""),
    ("[dependencies.x]\njob = 'b'\ncopy_outputs = 'no'", 6, 19, "wants true or false", "without quotes"),
    ("[dependencies.x]\njob = 'a'", 4, 18, "the job depends on itself", "another job"),
    (
        "\n".join(f"dependencies.d{at}.job = 'b'" for at in range(65)),
        68,
        17,
        "65 entries; it may have at most 64",
        "",
    ),
    ("[[publish]]\nseries = 's'\nname = 'n'", 4, 6, "`publish` has no `from_output`", "[[publish]]"),
    ("publish = [{from_output='', series='s', name='n'}]", 4, 28, "`publish.from_output` is empty", ""),
    (
        "[[publish]]\nfrom_output = '/x'\nseries = 's'\nname = 'n'\n[[publish]]\nseries = 's'\n"
        "from_output = '/x'\nname = 'n'\nrevision = '1'",
        12,
        4,
        "unknown key `revision`",
        "did you mean `version`?",
    ),
    ("publish = [{from_output='/x', series='s/t', name='n'}]", 4, 41, "`s/t` is not a part of a published", "1 to 100"),
    ("publish = [{from_output='/x', series='..', name='n'}]", 4, 41, "`..` is not a part of a published name", ""),
    ("[[publish]]\nfrom_output = '/x'\nseries = 's'\nname = 'n'\nversion = ''", 8, 14, "is empty", ""),
    (
        "matrix.os = ['a']\n[[publish]]\nfrom_output = '/x'\nseries = 's'\nname = '${{ matrix.so }}'",
        8,
        11,
        "there is no axis `so`",
        "os",
    ),
    # resources
    ("resources = 'bench'", 4, 16, "`resources` wants a list of resource types, or tables like", ""),
    ("resources = ['a', 'b c']", 4, 22, "`b c` is not a resource type", "letters"),
    ("resources = ['a', 'a']", 4, 22, "`a` is listed twice", "[resources.one]"),
    ("resources = [{type = 'a'}]", 4, 17, "wants a resource type in quotes, not a table", "[resources.db]"),
    ("[[resources]]\ntype = 'a'", 4, 6, "wants a resource type in quotes, not a table", "[resources.db]"),
    (
        "[resources.db]\nlabels = 'a =='",
        5,
        13,
        "wanted a value after `==`, not the end, at column 5",
        "board == gimlet",
    ),
    ("[resources.db]\nlabels = 4", 5, 13, "wants an expression", "double quotes"),
    ("[resources.db]\nlabels = 'a'\nthing = 'b'", 5, 13, "has the labels that it has", "keep either"),
    ("[resources.db]\nplacement = 'tight'", 5, 16, "cannot be `tight`", "packed"),
    ("[resources.db]\nplacement = 4", 5, 16, "wants a string, not a whole number", "packed"),
    ("[resources.db]\ncount = 0", 5, 12, "from 1 to 20", ""),
    ("[resources.db]\ncount = 2\n[resources.'db.2']", 6, 15, "there is a resource `db.2` already", "its own name"),
    ("[resources.db]\nthing = 'a b'", 5, 12, "`a b` is not a thing's name", "bench-3"),
    ("[resources.db]\nexclusive = 'yes'", 5, 16, "wants true or false", "without quotes"),
    ("[resources.a]\ncount = 20\n[resources.b]", 4, 5, "asks for 21 resources", ""),
    ("[resources.db]\ntyp = 'x'\ntype = 'x'", 5, 4, "unknown key `typ`", "did you mean `type`?"),
    ("[resources.'a b']\ntype = 'x'", 4, 15, "`a b` is not a resource name", "letters"),
    ("resources.db = 'x'", 4, 19, "`resources.db` wants a table, not a string", "[resources.db]"),
    ("[resources.db]\ntype = 'x'\noptions = 1", 6, 14, "`resources.db.options` wants a table", "{ size"),
    (
        "[resources.db]\ntype = 'x'\noptions.when = 10:00:00",
        6,
        19,
        "wants a string, number, true",
        "",
    ),
    ("[resources.db]\ntype = 'x'\noptions.a = [1, nan]", 6, 20, "wants a finite number", ""),
    ("[resources.db]\ntype = 'x'\noptions.a = 9223372036854775808", 6, 16, "at most 64 bits", ""),
    ("[resources.db]\ntype = 'x'\noptions.a = '\\u0000'\noptions.b = \"\\u0000\"", 7, 16, "without NUL", ""),
    ("[resources.db]\ntype = 'x'\noptions.a = [[[[[[[[[]]]]]]]]]", 6, 24, "nested at most 8 deep", ""),
    (f"[resources.db]\ntype = 'x'\noptions.a = '{'x' * 9000}'", 6, 4, "takes 9009 bytes as JSON", ""),
    (
        "\n".join(f"resources.r{at}.type = 'b'" for at in range(21)),
        24,
        14,
        "21 entries; it may have at most 20",
        "",
    ),
    # environment and tags
    ("env = ['A=1']", 4, 10, "`env` wants a table of strings, not a list", ""),
    ("env.A = 1", 4, 12, "`env.A` wants a string, not a whole number", "double quotes"),
    ("env.A-B = '1'", 4, 8, "a variable's name is letters", ""),
    ("env.1A = '1'", 4, 8, "a variable's name is letters", ""),
    ("env.PENSTOCK_JOB_ID = '1'", 4, 8, "set by the service", ""),
    ("env.BUILDOMAT_JOB_ID = '1'", 4, 8, "set by the service", ""),
    ('env.A = "\\u0000"', 4, 12, "holds the character U+0000", ""),
    (f"env.A = '{'x' * 32768}'", 4, 4, "`env` takes 32769 bytes; it may take at most 32768", "into a file"),
    ("\n".join(f"env.A{at} = ''" for at in range(101)), 104, 8, "101 entries; it may have at most 100", ""),
    ("tags.Big = 'x'", 4, 9, "a tag's name is lower-case letters", ""),
    (f"tags.{'x' * 129} = ''", 4, 9, "a tag's name has at most 128", ""),
    (f"tags.a = '{'x' * 1025}'", 4, 13, "has 1025 characters; it may have at most 1024", ""),
    ("tags.a = true", 4, 13, "`tags.a` wants a string, not true or false", ""),
    # keys swallowed by the table above them
    (
        "[dependencies]\ntarget = 'y'",
        5,
        13,
        "`dependencies.target` wants a table",
        "above the `dependencies`",
    ),
    ("[env]\npriority = 1", 5, 15, "`env.priority` wants a string", "above the `env` table's line"),
    (
        "[[publish]]\nfrom_output = '/x'\nseries = 's'\nname = 'n'\naccess_repos = []",
        8,
        4,
        "unknown key `access_repos`",
        "above the `publish` table's line",
    ),
]


@pytest.mark.parametrize(("toml", "line", "column", "message", "hint"), KEY_ROWS)
def test_key(toml: str, line: int, column: int, message: str, hint: str) -> None:
    found = only(below(toml))
    assert found[:2] == (line, column), found
    assert message in found[2]
    assert hint in found[3]


def test_unknown_keys_of_a_dependency_are_ignored_and_told() -> None:
    """As in buildomat: files that it accepts have some."""
    found = parse(below("[dependencies.x]\njob = 'b'\ncopy = 1\ntarget = 'y'\non = 'always'"), "job.sh")
    assert isinstance(found, JobFile)
    assert found.target == "default"
    assert [(each.name, each.job, each.on) for each in found.dependencies] == [("x", "b", "always")]
    copy, target = found.ignored
    assert str(copy) == (
        "job.sh:6:4: the key `copy` has no effect here (known here: job, on, copy_outputs)"
    )  # fmt: skip
    assert str(target).startswith(
        "job.sh:7:4: the key `target` has no effect here (`target` is a key of the job: write"
    )


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a", "b.txt"], []),
        (["a/b"], ["an entry of `inputs`: no `/` in an input's name"]),
        ([".."], ["an entry of `inputs` cannot be an input's name"]),
        ([""], ["an entry of `inputs` is empty"]),
        (["a", "a"], ["/input/a is there twice"]),
        (["build"], ["/input/build is there twice"]),
        (["test"], ["/input/test is there twice"]),
        (["board-a", "test2"], []),
        ([f"f{number}" for number in range(26)], ["`inputs` has 26 entries; it may have at most 25"]),
    ],
)
def test_names_of_inputs(names: list[str], said: list[str]) -> None:
    assert [fault.message for fault in check_inputs(names, ["build", "test/board-a"])] == said


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("build", []),
        ("build/board-a", []),
        ("build/a/b", ["`dependencies.build/a/b`: no `/` in a dependency's name"]),
        ("build/..", ["`dependencies.build/..` cannot be a dependency's name"]),
        ("build/", ["`dependencies.build/`: nothing stands on one side of the `/`"]),
        ("/build", ["`dependencies./build`: nothing stands on one side of the `/`"]),
    ],
)
def test_a_request_names_one_of_several_jobs_of_a_file(name: str, said: list[str]) -> None:
    found, faults = check_asked({name: {"job": "J", "on": "always"}})
    assert [fault.message for fault in faults] == said
    assert [(each.name, each.job, each.on) for each in found] == [(name, "J", "always")]


@pytest.mark.parametrize(
    ("names", "uncopied", "said"),
    [
        (["build", "build/a"], [], ["`dependencies.build/a`: its folder is inside that of `build`"]),
        (["build/a", "build"], [], ["`dependencies.build/a`: its folder is inside that of `build`"]),
        (["build", "build/a"], ["build"], []),
        (["build", "build/a"], ["build/a"], []),
        (["build/a", "build/b", "build2", "a"], [], []),
    ],
)
def test_no_dependencys_folder_is_inside_another_s(names: list[str], uncopied: list[str], said: list[str]) -> None:
    """Else `/a/x` of one and `/x` of the other would be the same file."""
    _, faults = check_asked({name: {"job": "J", "copy_outputs": name not in uncopied} for name in names})
    assert [fault.message for fault in faults] == said


def test_a_request_has_no_unknown_keys() -> None:
    _, faults = check_asked({"build": {"job": "J", "copy": True}})
    assert [fault.message for fault in faults] == ["unknown key `copy`"]


def test_posts_in_their_order() -> None:
    one, other = (
        "[[post]]\nname = 'b'\non = 'failure'\nscript = \"echo $X\\necho\"",
        "[[post]]\nname = 'a'\non = 'always'\nscript = 'true'",
    )
    found = parse(below(f"{one}\n{other}"), "job.sh")
    assert isinstance(found, JobFile)
    assert found.post == (Post("b", "failure", "echo $X\necho"), Post("a", "always", "true"))


def test_as_many_posts_as_there_may_be() -> None:
    def tables(many: int) -> str:
        return "".join(f"[[post]]\nname = 'p{at}'\non = 'success'\nscript = 'x'\n" for at in range(many))

    found = parse(below(tables(limits.POSTS)), "job.sh")
    assert isinstance(found, JobFile)
    assert len(found.post) == limits.POSTS
    assert "`post` has 21 entries; it may have at most 20" in only(below(tables(limits.POSTS + 1)))[2]


def good(toml: str) -> JobFile:
    found = parse(below(toml), "a.sh")
    assert isinstance(found, JobFile), found
    return found


def test_a_job_says_what_its_machine_must_have() -> None:
    whole = 'machine = { cpus = 4, memory = "16GiB", scratch = "100GiB", gpu = 1, arch = "arm64" }'
    found = parse(below(whole), "job.sh")
    assert isinstance(found, JobFile), found
    assert found.machine == Machine(4, Size(16 * 1024**3), Size(100 * 1024**3), 1, "arm64")
    assert f"machine = {{ {found.machine} }}" == whole
    plain = parse(below(""), "job.sh")
    assert isinstance(plain, JobFile)
    assert plain.machine is None


def test_a_table_says_which_things_it_asks_for_and_how_many() -> None:
    found = good(
        "[resources.bench]\nlabels = 'rack == 4'\ncount = 2\nexclusive = true\nplacement = 'packed'\n"
        "[resources.jig]\nthing = 'jig-1'\n[resources.db]\ntype = 'database'\nplacement = 'any'"
    )
    bench = Choice("rack == 4", exclusive=True, placement=Placement.PACKED)
    assert [(ask.name, ask.type, ask.choice) for ask in found.resources] == [
        ("bench.1", "bench", bench),
        ("bench.2", "bench", bench),
        ("jig", "jig", Choice("name == jig-1")),
        ("db", "database", None),
    ]


def test_the_options_of_several_have_one_place() -> None:
    found = good("[resources.db]\ncount = 2\noptions = { size = 'small' }")
    assert [ask.spot for ask in found.resources] == [(6, 4), (6, 4)]


def test_services_are_told_to_the_factory_as_the_file_says_them() -> None:
    db = f"[services.db]\nimage = '{IMAGE}'\nenv = {{ A = 'b' }}\nready = 'pg_isready'"
    found = good(f"image = '{IMAGE}'\n{db}\n[services.cache]\nimage = '{IMAGE}'")
    said = {"image": IMAGE, "env": {"A": "b"}, "ready": "pg_isready"}
    assert found.worker_options == {"image": IMAGE, "services": {"db": said, "cache": {"image": IMAGE}}}
    assert (found.spots["image"], good(db).worker_options["services"]["db"]) == ((4, 4), said)
