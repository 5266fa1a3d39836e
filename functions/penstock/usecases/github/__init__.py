"""The front end for GitHub: from deliveries to jobs, and from jobs to check runs.

webhook       deliveries: received, fetched if missed, listed, processed
steps         takes the step that a message names
commits       what to run of a commit; its jobs are submitted, cancelled, run again
repositories  whose a repository's name is, and what its jobs may read
check_runs    a job's check run
tokens        GITHUB_TOKEN, when a job asks for it
hints         messages to this front end
client        calls of GitHub's API
"""
