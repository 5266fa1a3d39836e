"""The GitHub front end: deliveries, the jobs of a commit, their check runs, a repository's policy, and GITHUB_TOKEN."""
