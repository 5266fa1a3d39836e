import { render } from "preact";

import "./style/tokens.css";
import "./style/base.css";
import "./style/parts.css";
import { App } from "./app";
import { arrive } from "./arrive";
import { applyTheme } from "./theme";

applyTheme();
arrive();
render(<App />, document.getElementById("app") as HTMLElement);
