"""The front end for GitHub: what it hears, what a repository lets it do, and what it shows of jobs.

deliveries  what GitHub says, as far as it matters here
policy      what a repository's default branch says of its jobs
checksets   the jobs of one commit: from the first word of it to their end
checks      one job of a commit, and the check run that shows it
reports     what a check run says
tokens      GITHUB_TOKEN: how long one is good for
"""
