// Runs the suite, and tells the server what happens (browser.rs has the words).

globalThis.say = body => fetch(new URL('/say', location), { method: 'POST', body });
globalThis.addEventListener?.('error', event => say(`died ${event.message}`));
globalThis.addEventListener?.('unhandledrejection', event => say(`died ${event.reason}`));

// Complaints of the browser, which the library may have missed.
const heard = [];
const { requestDevice } = GPUAdapter.prototype;
GPUAdapter.prototype.requestDevice = async function (descriptor) {
  const device = await requestDevice.call(this, descriptor);
  device.addEventListener('uncapturederror', event => heard.push(event.error.message));
  return device;
};
const { popErrorScope } = GPUDevice.prototype;
GPUDevice.prototype.popErrorScope = async function () {
  const error = await popErrorScope.call(this);
  if (error) heard.push(error.message);
  return error;
};
globalThis.complaints = () => heard.splice(0).join('\n');

const query = new URL(location).searchParams;
const turn = query.has('turn') ? Number(query.get('turn')) : undefined;
const only = query.get('only') ?? '';

// Makes the GPU do nothing: all that is read are zeros.
if (query.has('idle')) GPUQueue.prototype.submit = () => {};

// Runs the example for a page, in a frame.
async function example() {
  const frame = document.createElement('iframe');
  frame.src = 'example/index.html?adapter=browser-webgpu';
  document.body.append(frame);
  for (let tries = 0; tries < 600; tries++) {
    await new Promise(done => setTimeout(done, 100));
    const text = frame.contentDocument.getElementById('product')?.textContent ?? '';
    if (text.includes('browser-webgpu') && text.includes('[58.0, 64.0, 139.0, 154.0]')) return;
    if (text) throw new Error(text);
  }
  throw new Error('the page shows nothing');
}

if (globalThis.document && 'example'.includes(only)) {
  const name = 'example: a page with a product';
  await say(`case ${name}`);
  const wrong = await example().then(() => 0, error => say(`failed ${name}\n${error}`));
  await say(`section example: ${wrong ? 0 : 1} of 1 passed, 1 in all`);
}

const { default: init, run } = await import('./browser.js');
await init({ module_or_path: fetch(new URL('browser_bg.wasm', location)) });
await run(turn, only);
