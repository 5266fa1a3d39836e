"""The front end for GitHub: from what it says to jobs, and from jobs to what it shows.

receiving    a webhook: checked, stored, and hinted at
missed       deliveries that never came are asked for
steps        takes the step that a message hints at
happening    what a delivery leads to
planning     policy, people, job files: what is to be run of a commit
binding      whose a repository's name is
reading      which other repositories its jobs may read
running      a commit's jobs are submitted, cancelled, run again
showing      a job's check run
tokens       GITHUB_TOKEN, when a job asks for it
calls        what GitHub is asked, in our words
"""
