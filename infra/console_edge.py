"""What CloudFront runs at each request: two functions in JavaScript (cloudfront-js-2.0)."""

from __future__ import annotations

from penstock.api.app import VIEWER
from penstock.console.headers import ASSETS

PAGES = f"""
// The console's paths, such as /jobs/ID, are all shown by index.html. Files are in {ASSETS} or beside it.
function handler(event) {{
  const request = event.request;
  const name = request.uri.replace(/^[/]+/, "");
  const isFile = name.startsWith("{ASSETS}") || /^[^/]+[.][^/.]+$/.test(name);
  if (!isFile) request.uri = "/index.html";
  return request;
}}
"""

ADDRESS = f"""
// The API learns which address a request came from. What the viewer sent under this name is replaced.
function handler(event) {{
  const request = event.request;
  request.headers["{VIEWER}"] = {{ value: event.viewer.ip }};
  return request;
}}
"""
