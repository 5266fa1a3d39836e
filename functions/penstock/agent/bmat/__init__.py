"""`bmat`: how a script asks about the job that it belongs to. It imports nothing of the agent."""
