"""The calls about jobs, and what belongs to one."""

from __future__ import annotations

from penstock import wire
from penstock.web.operation import Operation

JOB_OPERATIONS = (
    Operation(
        "submit_job",
        "POST",
        "/v1/jobs",
        "Submit a job, or (plan=true) say what would become of it",
        wire.Created,
        wire.SubmitJob,
        201,
        query=("plan",),
        also=((200, "planned: nothing was written", wire.PlanView),),
    ),
    Operation(
        "list_jobs",
        "GET",
        "/v1/jobs",
        "List your jobs, newest first",
        wire.JobPage,
        query=("state", "target", "tag", "owner", "limit", "page"),
    ),
    Operation("get_job", "GET", "/v1/jobs/{job}", "Show a job", wire.JobView),
    Operation("cancel_job", "POST", "/v1/jobs/{job}/cancel", "Cancel a job", wire.JobView),
    Operation(
        "hold_job",
        "POST",
        "/v1/jobs/{job}/hold",
        "Hold what a job has when its script has ended",
        wire.JobView,
        wire.HoldJob,
    ),
    Operation("release_job", "POST", "/v1/jobs/{job}/release", "Hold nothing of a job any more", wire.JobView),
    Operation("retry_job", "POST", "/v1/jobs/{job}/retry", "Submit a job once more", wire.Created, status=201),
    Operation("explain_job", "GET", "/v1/jobs/{job}/why", "Say why a job is where it is", wire.WhyView),
    Operation(
        "read_events",
        "GET",
        "/v1/jobs/{job}/events",
        "Read a job's log",
        wire.EventPage,
        query=("after", "limit", "last"),
    ),
    Operation(
        "list_outputs", "GET", "/v1/jobs/{job}/outputs", "List a job's outputs", wire.OutputPage, query=("page",)
    ),
    Operation(
        "sign_output",
        "POST",
        "/v1/jobs/{job}/outputs/{output}/sign",
        "Get a URL for an output",
        wire.SignedOutput,
        wire.SignOutput,
        bare=True,
    ),
    Operation(
        "publish_output",
        "POST",
        "/v1/jobs/{job}/outputs/{output}/publish",
        "Publish an output",
        wire.PublishedView,
        wire.PublishOutput,
        201,
        also=((200, "it was published already, with the same bytes", wire.PublishedView),),
    ),
    Operation("list_inputs", "GET", "/v1/jobs/{job}/inputs", "List what is sent with a job", wire.InputList),
    Operation(
        "send_input",
        "POST",
        "/v1/jobs/{job}/inputs",
        "Get a URL to send an input to",
        wire.InputUpload,
        wire.NewInput,
    ),
    Operation(
        "send_parts",
        "POST",
        "/v1/jobs/{job}/inputs/parts",
        "Get URLs to send parts of an input to, at most 100 at once",
        wire.PartUploads,
        wire.InputParts,
    ),
    Operation(
        "commit_input",
        "POST",
        "/v1/jobs/{job}/inputs/commit",
        "Say that an input was sent",
        wire.InputList,
        wire.InputName,
    ),
    Operation("list_values", "GET", "/v1/jobs/{job}/store", "List a job's values", wire.ValuePage),
    Operation("get_value", "GET", "/v1/jobs/{job}/store/{name}", "Show a value of a job", wire.ValueView),
    Operation(
        "put_value",
        "PUT",
        "/v1/jobs/{job}/store/{name}",
        "Put a value into a job's store",
        wire.ValueView,
        wire.PutValue,
    ),
    Operation("get_timings", "GET", "/v1/jobs/{job}/timings", "Show how long each step took", wire.TimingsView),
)
