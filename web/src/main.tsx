import { render } from "preact";

import "./style/tokens.css";
import "./style/base.css";
import "./style/parts.css";
import { App } from "./app";
import { applyTheme } from "./theme";

applyTheme();
render(<App />, document.getElementById("app") as HTMLElement);
