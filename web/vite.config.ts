import preact from "@preact/preset-vite";
import { defineConfig } from "vite";

// `npm run dev` serves the sources and passes requests to a service. PENSTOCK_URL is its address, PENSTOCK_TOKEN a token
// that is shown for whoever opens the page, so nobody has to sign in while writing it.
const { PENSTOCK_URL: service = "http://127.0.0.1:8000", PENSTOCK_TOKEN: token } = process.env;

export default defineConfig({
  plugins: [preact()],
  build: {
    outDir: "../build/web",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0, // the page's policy forbids data: for scripts and styles
    modulePreload: { polyfill: false },
    manifest: true, // it says what the first view needs
  },
  server: {
    fs: { allow: [".."] }, // the runbooks are sections of ../docs
    proxy: {
      "/v1": {
        target: service,
        changeOrigin: true,
        headers: token ? { authorization: `Bearer ${token}` } : {},
        configure: (proxy) => proxy.on("proxyReq", (request) => request.removeHeader("origin")),
      },
    },
  },
});
