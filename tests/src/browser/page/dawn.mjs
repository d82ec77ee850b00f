// Node with Chromium's WebGPU in place of a browser: `node dawn.mjs URL`.
import { create, globals } from 'webgpu';

const gpu = create([]);
// Its `keys` gives no iterator.
Object.defineProperty(gpu, 'wgslLanguageFeatures', { value: new Set(gpu.wgslLanguageFeatures) });
Object.assign(globalThis, globals, { Window: class {}, location: new URL(process.argv[2]) });
Object.defineProperty(globalThis, 'navigator', { value: { gpu } });
process.on('uncaughtException', error => say(`died ${error}`));
await import('./page.mjs');
