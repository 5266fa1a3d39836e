"""The calls that agents make."""

from __future__ import annotations

from penstock.web.operation import Operation
from penstock.wire import agent as wire_agent

AGENT_OPERATIONS = (
    Operation("agent_source", "GET", "/v1/agent/agent.pyz", "The agent's own program", open=True),
    Operation(
        "agent_hello", "POST", "/v1/agent/hello", "Say hello and get the job", body=wire_agent.AgentHello, open=True
    ),
    Operation("agent_events", "POST", "/v1/agent/jobs/{job}/events", "Send lines", body=wire_agent.AgentEvents),
    Operation("agent_resources", "POST", "/v1/agent/jobs/{job}/resources", "Ask anew what is known of the resources"),
    Operation(
        "agent_inputs",
        "POST",
        "/v1/agent/jobs/{job}/inputs",
        "Ask what to fetch before the script begins",
        body=wire_agent.AgentInputs,
    ),
    Operation(
        "agent_get_value",
        "POST",
        "/v1/agent/jobs/{job}/store/get",
        "Read a value of the job's store",
        body=wire_agent.AgentGetValue,
    ),
    Operation(
        "agent_put_value",
        "POST",
        "/v1/agent/jobs/{job}/store/put",
        "Put a value into the job's store",
        body=wire_agent.AgentPutValue,
    ),
    Operation(
        "agent_find_cache",
        "POST",
        "/v1/agent/jobs/{job}/caches/find",
        "Look for what a cache has",
        body=wire_agent.AgentFindCache,
    ),
    Operation(
        "agent_save_cache",
        "POST",
        "/v1/agent/jobs/{job}/caches/save",
        "Ask leave to send an archive for a cache",
        body=wire_agent.AgentSaveCache,
    ),
    Operation(
        "agent_cache_parts",
        "POST",
        "/v1/agent/jobs/{job}/caches/parts",
        "Ask leave to send parts of an archive",
        body=wire_agent.AgentParts,
    ),
    Operation(
        "agent_commit_cache",
        "POST",
        "/v1/agent/jobs/{job}/caches/commit",
        "Say that an archive was sent",
        body=wire_agent.AgentCommitCache,
    ),
    Operation(
        "agent_identity",
        "POST",
        "/v1/agent/jobs/{job}/identity",
        "Ask for an identity token of the attempt",
        body=wire_agent.AgentIdentity,
    ),
    Operation("agent_heartbeat", "POST", "/v1/agent/jobs/{job}/heartbeat", "Renew the lease"),
    Operation(
        "agent_outputs", "POST", "/v1/agent/jobs/{job}/outputs", "Ask leave to send files", body=wire_agent.AgentOutputs
    ),
    Operation(
        "agent_parts",
        "POST",
        "/v1/agent/jobs/{job}/outputs/parts",
        "Ask leave to send parts of a file",
        body=wire_agent.AgentParts,
    ),
    Operation(
        "agent_commit",
        "POST",
        "/v1/agent/jobs/{job}/outputs/commit",
        "Say that files were sent",
        body=wire_agent.AgentCommit,
    ),
    Operation("agent_host", "POST", "/v1/agent/hosts/{host}", "Ask what a host is to do", body=wire_agent.AgentHost),
    Operation("agent_finish", "POST", "/v1/agent/jobs/{job}/finish", "Say how it ended", body=wire_agent.AgentFinish),
)
