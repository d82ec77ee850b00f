// Gives Node Chromium's WebGPU, to run the suite without a browser: `node dawn.mjs URL`.
import { create, globals } from 'webgpu';

const gpu = create([]);
// The `keys` of Dawn's own object gives no iterator.
Object.defineProperty(gpu, 'wgslLanguageFeatures', { value: new Set(gpu.wgslLanguageFeatures) });
Object.assign(globalThis, globals, { Window: class {}, location: new URL(process.argv[2]) });
Object.defineProperty(globalThis, 'navigator', { value: { gpu } });
process.on('uncaughtException', error => say(`died ${error}`));
await import('./page.mjs');
