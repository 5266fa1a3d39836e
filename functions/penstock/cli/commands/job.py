"""penstock job: the table of its commands."""

from penstock.cli.framework import Entry, Group

HERE = "penstock.cli.commands"

group = Group(
    "job",
    "Submit jobs, follow them, and fetch what they made.",
    {
        "run": Entry(f"{HERE}.job_run:run", "Submit a job file; stream its log and exit as the job did."),
        "list": Entry(f"{HERE}.job_read:list_", "List jobs, the newest first."),
        "show": Entry(f"{HERE}.job_read:show", "Show a job."),
        "tail": Entry(f"{HERE}.job_run:tail", "Show a job's log, and follow it until the job settles."),
        "cancel": Entry(f"{HERE}.job_act:cancel", "End a job."),
        "why": Entry(f"{HERE}.job_read:why", "Explain what a job waits for."),
        "send": Entry(f"{HERE}.job_send:send", "Send files that a job waits for."),
        "outputs": Entry(f"{HERE}.job_outputs:outputs", "List the files that a job made."),
        "copy": Entry(f"{HERE}.job_outputs:copy", "Download an output, checked."),
        "sign": Entry(f"{HERE}.job_outputs:sign", "Print a URL that anybody can download an output from."),
        "publish": Entry(f"{HERE}.published:publish", "Give an output a name for good, from which others fetch it."),
        "timings": Entry(f"{HERE}.job_read:timings", "Show how long each part of a job took, and its cost."),
        "hold": Entry(f"{HERE}.job_hold:hold", "Hold its worker and resources when its script ends, to look at them."),
        "release": Entry(f"{HERE}.job_hold:release", "Hold nothing of a job any more."),
        "retry": Entry(f"{HERE}.job_act:retry", "Submit the same job again."),
        "store": Entry(f"{HERE}.job_store:group", "Small values that a job and its user exchange."),
        "lint": Entry(f"{HERE}.job_lint:lint", "Check job files, without submitting them."),
    },
)
