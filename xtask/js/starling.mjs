// Builds one JavaScript guest with componentize-js: node starling.mjs SOURCE WIT-FOLDER WORLD OUTPUT
//
// componentize-js is called here and not through jco, whose default backend is another one. Of the engine's features
// only `stdio` stays, for error texts; so the component imports neither sockets nor wasi:http nor random.
//
// In package.json: componentize-js imports preview2-shim without declaring it and reads files through it, which
// release 0.26 denies; jco is held at the release it was written for, since later ones bring three times the packages.
import { writeFile } from "node:fs/promises";
import { componentize } from "@bytecodealliance/componentize-js";

const [sourcePath, witPath, worldName, output] = process.argv.slice(2);
const { component } = await componentize({
  sourcePath,
  witPath,
  worldName,
  disableFeatures: ["http", "fetch-event", "random", "clocks"],
});
await writeFile(output, component);
