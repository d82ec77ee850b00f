// Reads WGSL with Tint, the compiler of Chrome, in Dawn for Node:
//
//     node tint.mjs FOLDER-OF-THE-PACKAGE-webgpu < LIST
//
// A line of LIST is a path. For each text it writes `@ OUTCOME SECONDS PATH`, where the outcome is
// `taken`, or `refused` with Tint's messages on the lines before, each as `LINE:COLUMN: MESSAGE`.

import { readFileSync } from 'node:fs';

const { create } = await import(`${process.argv[2]}/index.js`);
// Dawn ends when this object is collected, whatever else is in use.
globalThis.gpu = create(['backend=null']);
const adapter = await gpu.requestAdapter();
if (!adapter) {
  throw new Error('no adapter');
}
for (const feature of ['shader-f16', 'subgroups']) {
  if (!adapter.features.has(feature)) {
    throw new Error(`the adapter lacks ${feature}`);
  }
}
const device = await adapter.requestDevice({ requiredFeatures: ['shader-f16', 'subgroups'] });
for (const path of readFileSync(0, 'utf8').split('\n').filter((line) => line)) {
  const began = performance.now();
  // The scope catches errors, which would end the program otherwise; the messages say the same.
  device.pushErrorScope('validation');
  const module = device.createShaderModule({ code: readFileSync(path, 'utf8') });
  const { messages } = await module.getCompilationInfo();
  const error = await device.popErrorScope();
  const errors = messages.filter((message) => message.type === 'error');
  for (const { lineNum, linePos, message } of errors) {
    console.log(`${lineNum}:${linePos}: ${message}`);
  }
  if (error && !errors.length) {
    console.log(error.message);
  }
  const seconds = ((performance.now() - began) / 1000).toFixed(3);
  console.log(`@ ${error || errors.length ? 'refused' : 'taken'} ${seconds} ${path}`);
}
process.exit(0);
