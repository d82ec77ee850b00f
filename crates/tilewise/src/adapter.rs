//! Adapters: which there are, what to ask of one, and what it can do.

#[cfg(all(target_vendor = "apple", feature = "metal"))]
pub(crate) mod apple;
pub(crate) mod capture;
pub(crate) mod msl;
pub(crate) mod options;

use tilewise_core::caps::PATIENCE;
use tilewise_core::{Caps, CoopMatrix, DType, DeviceClass, PackedProducts};

/// An adapter, described.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AdapterDescription {
    /// Name of the device; `unnamed WebGPU adapter` if a browser tells no name.
    pub name: String,
    /// `vulkan`, `metal`, `dx12`, `gl` or `browser-webgpu`.
    pub backend: &'static str,
    /// Driver and its version, if the backend tells them.
    pub driver: String,
    #[cfg_attr(not(feature = "planner"), expect(dead_code))]
    pub(crate) caps: Caps,
    /// Whether it is hardware rather than a software rasterizer.
    pub hardware: bool,
    /// Whether it has timestamps for compute passes.
    pub timestamps: bool,
    /// Whether kernels in MSL are meant for it: an Apple GPU with simdgroup matrices, through
    /// Metal, with the feature `msl`.
    pub msl: bool,
}

impl AdapterDescription {
    /// The CPU executor, which [`adapters`] does not list.
    pub fn cpu() -> Self {
        AdapterDescription {
            name: cpu_caps().name,
            backend: "cpu",
            driver: String::new(),
            caps: cpu_caps(),
            hardware: false,
            timestamps: false,
            msl: false,
        }
    }

    pub(crate) fn of(adapter: &wgpu::Adapter) -> Self {
        let info = info_of(adapter);
        AdapterDescription {
            driver: driver(&info),
            backend: backend_name(info.backend),
            caps: caps_of(adapter),
            hardware: is_hardware(adapter),
            timestamps: adapter.features().contains(wgpu::Features::TIMESTAMP_QUERY),
            msl: msl::suits(info.backend, required_features(adapter), &coop_of(adapter)),
            name: info.name,
        }
    }

    /// Whether `name` means this adapter: part of its name, its backend, or both, as
    /// `vulkan:llvmpipe`.
    pub(crate) fn bears(&self, name: &str) -> bool {
        let of_name = |part: &str| self.name.to_lowercase().contains(&part.to_lowercase());
        let of_both = |(backend, part): (&str, &str)| {
            self.backend.eq_ignore_ascii_case(backend) && of_name(part)
        };
        self.backend.eq_ignore_ascii_case(name)
            || of_name(name)
            || name.split_once(':').is_some_and(of_both)
    }
}

/// Every adapter that wgpu finds on this machine. Does not block; in a browser it finds at most
/// one.
pub async fn adapters() -> Vec<AdapterDescription> {
    let all = find(wgpu::PowerPreference::None).await.into_iter().chain(find_gl().await);
    let mut found: Vec<_> = all.map(|adapter| AdapterDescription::of(&adapter)).collect();
    found.sort_by(|a, b| (a.backend, &a.name).cmp(&(b.backend, &b.name)));
    found
}

/// The adapters of every backend except OpenGL. One instance serves all contexts of a process: a
/// device then refuses objects of another device, while objects of another instance would panic
/// inside wgpu. The preference is for browsers; here the caller ranks the adapters.
#[cfg(not(target_family = "wasm"))]
pub(crate) async fn find(_: wgpu::PowerPreference) -> Vec<wgpu::Adapter> {
    static SHARED: std::sync::OnceLock<wgpu::Instance> = std::sync::OnceLock::new();
    let backends = wgpu::Instance::enabled_backend_features() - wgpu::Backends::GL;
    if backends.is_empty() {
        return Vec::new();
    }
    SHARED.get_or_init(|| instance(backends)).enumerate_adapters(backends).await
}

/// The adapters of OpenGL. Ask for them only if no other adapter will do: initialising OpenGL takes
/// time and leaves marks on every thread. Each call makes a new instance, because all objects of an
/// instance share one GL context, which serves one thread at a time.
#[cfg(not(target_family = "wasm"))]
pub(crate) async fn find_gl() -> Vec<wgpu::Adapter> {
    let gl = wgpu::Backends::GL;
    if !wgpu::Instance::enabled_backend_features().contains(gl) {
        return Vec::new();
    }
    instance(gl).enumerate_adapters(gl).await
}

/// An instance without wgpu's debug information, which `WGPU_DEBUG=1` brings back: in a debug build
/// wgpu would write the line of every expression into the shaders, in time that is quadratic in
/// their length. The environment sets a backend's own options, such as `WGPU_DX12_COMPILER`.
fn instance(backends: wgpu::Backends) -> wgpu::Instance {
    let flags =
        wgpu::InstanceFlags::from_build_config().difference(wgpu::InstanceFlags::DEBUG).with_env();
    let plain = wgpu::InstanceDescriptor::new_without_display_handle();
    let backend_options = wgpu::BackendOptions::from_env_or_default();
    wgpu::Instance::new(wgpu::InstanceDescriptor { backends, flags, backend_options, ..plain })
}

/// The adapter that a browser prefers; it does not list others. A browser has one instance behind
/// the scenes, and its handles do not leave their thread.
#[cfg(target_family = "wasm")]
pub(crate) async fn find(power_preference: wgpu::PowerPreference) -> Vec<wgpu::Adapter> {
    let enabled = wgpu::Instance::enabled_backend_features();
    if enabled.is_empty() {
        return Vec::new();
    }
    let options = wgpu::RequestAdapterOptions { power_preference, ..Default::default() };
    instance(enabled).request_adapter(&options).await.into_iter().collect()
}

/// None: a browser has no OpenGL besides WebGPU.
#[cfg(target_family = "wasm")]
pub(crate) async fn find_gl() -> Vec<wgpu::Adapter> {
    Vec::new()
}

/// All features that the adapter has and the library can use. None is indispensable.
pub(crate) fn required_features(adapter: &wgpu::Adapter) -> wgpu::Features {
    let speed = wgpu::Features::SHADER_F16
        | wgpu::Features::TIMESTAMP_QUERY
        | wgpu::Features::PIPELINE_CACHE;
    // On DX12, subgroups tell DXC from FXC.
    let asked = cfg!(feature = "custom-kernels")
        || adapter.features().contains(COOPERATIVE)
        || adapter.get_info().backend == wgpu::Backend::Dx12;
    let subgroups = if asked { SUBGROUPS } else { wgpu::Features::empty() };
    // Only on Metal are kernels passed through.
    let metal = msl::has_msl(msl::ALL) && adapter.get_info().backend == wgpu::Backend::Metal;
    let msl = if metal { wgpu::Features::PASSTHROUGH_SHADERS } else { wgpu::Features::empty() };
    adapter.features() & (speed | subgroups | msl | COOPERATIVE)
}

const COOPERATIVE: wgpu::Features = wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX;
const SUBGROUPS: wgpu::Features = wgpu::Features::SUBGROUP.union(wgpu::Features::SUBGROUP_BARRIER);

/// The features that kernels in WGSL for matrix units ask for.
pub(crate) const MATRIX_UNITS: wgpu::Features = COOPERATIVE.union(SUBGROUPS);

/// The descriptor of a device for [`Context::from_wgpu`](crate::Context::from_wgpu), which has an
/// example. Add your own features and limits to it.
///
/// It asks for all features that the adapter has and tilewise can use. None is indispensable. The
/// limits are the adapter's own. The defaults of WebGPU work too, with smaller tiles and operands.
///
/// Matrix units through Vulkan are an experimental feature of wgpu. The descriptor asks for them if
/// `experimental` is [`enabled`](wgpu::ExperimentalFeatures::enabled), a token that wgpu gives to
/// an unsafe call. With [`disabled`](wgpu::ExperimentalFeatures::disabled) products do without
/// them.
pub fn device_descriptor(
    adapter: &wgpu::Adapter,
    experimental: wgpu::ExperimentalFeatures,
) -> wgpu::DeviceDescriptor<'static> {
    let mut required_features = required_features(adapter);
    if !experimental.is_enabled() {
        required_features.remove(COOPERATIVE);
    }
    wgpu::DeviceDescriptor {
        label: Some("tilewise"),
        required_features,
        required_limits: adapter.limits(),
        // wgpu does not count PASSTHROUGH_SHADERS as experimental. The unsafe call in
        // gpu/pipeline.rs answers for it.
        experimental_features: experimental,
        ..Default::default()
    }
}

/// The caps of a device that is made with all features and limits that the library asks for.
fn caps_of(adapter: &wgpu::Adapter) -> Caps {
    let coop = coop_of(adapter);
    caps(&info_of(adapter), required_features(adapter), &adapter.limits(), coop)
}

/// The square products of floats among those of the adapter's matrix units.
pub(crate) fn coop_of(adapter: &wgpu::Adapter) -> Vec<CoopMatrix> {
    let dtype = |scalar| match scalar {
        wgpu::CooperativeScalarType::F32 => Some(DType::F32),
        wgpu::CooperativeScalarType::F16 => Some(DType::F16),
        _ => None,
    };
    let square = |product: wgpu::CooperativeMatrixProperties| {
        let size = product.m_size;
        let (operands, sums) = (dtype(product.ab_type)?, dtype(product.cr_type)?);
        (product.n_size == size && product.k_size == size).then_some(CoopMatrix {
            size,
            operands,
            sums,
        })
    };
    adapter.cooperative_matrix_properties().into_iter().filter_map(square).collect()
}

/// PCI identifiers of the vendors on whose Vulkan drivers the suite has passed with matrix units:
/// NVIDIA.
const PROVEN: [u32; 1] = [0x10de];

/// Whether matrix units are used if no option says so. Through Vulkan their kernels rely on more
/// than SPIR-V promises (ARCHITECTURE.md, "Matrix units"), so each vendor's driver must pass the
/// suite first. Other backends have no matrix units for these kernels.
pub(crate) fn trusts_matrix_units(backend: wgpu::Backend, vendor: u32) -> bool {
    backend != wgpu::Backend::Vulkan || PROVEN.contains(&vendor)
}

/// The caps of the CPU executor.
pub(crate) fn cpu_caps() -> Caps {
    Caps {
        name: "CPU executor".into(),
        class: DeviceClass::Cpu,
        max_binding_bytes: isize::MAX as u64,
        max_buffer_bytes: isize::MAX as u64,
        max_submission_seconds: f64::INFINITY,
        ..Caps::webgpu_default()
    }
}

/// The size of a subgroup, if there is only one. Metal reports every size that any GPU might have;
/// GPUs with simdgroup matrices have 32.
fn subgroup_size(info: &wgpu::AdapterInfo) -> Option<u32> {
    match info.backend {
        wgpu::Backend::Metal => Some(32),
        _ => (info.subgroup_min_size == info.subgroup_max_size).then_some(info.subgroup_min_size),
    }
}

/// Whether kernels may use packed products of bytes. naga writes them out if its output language
/// has none, such as MSL; a browser may not know them.
fn packed_products(backend: wgpu::Backend, fxc: bool) -> PackedProducts {
    let known = wgpu::WgslLanguageFeatures::Packed4x8IntegerDotProduct;
    match backend {
        _ if fxc => PackedProducts::Absent(
            "FXC takes too long to compile them; DXC does not: wgpu uses DXC if dxcompiler.dll is \
             on the PATH, and its devices then have wgpu's feature SUBGROUP",
        ),
        wgpu::Backend::Vulkan | wgpu::Backend::Dx12 => PackedProducts::Instruction,
        wgpu::Backend::BrowserWebGpu => {
            if instance(wgpu::Backends::BROWSER_WEBGPU).wgsl_language_features().contains(known) {
                PackedProducts::Instruction
            } else {
                PackedProducts::Absent(
                    "the browser's WGSL lacks packed_4x8_integer_dot_product \
                     (navigator.gpu.wgslLanguageFeatures)",
                )
            }
        }
        _ => PackedProducts::WrittenOut,
    }
}

/// The caps of a device whose adapter has the matrix units `coop`.
pub(crate) fn caps(
    info: &wgpu::AdapterInfo,
    features: wgpu::Features,
    limits: &wgpu::Limits,
    coop: Vec<CoopMatrix>,
) -> Caps {
    // naga's MSL loads matrices from vectors as if the vectors were numbers, which Metal refuses.
    // On Metal, matrix units are therefore for kernels in MSL alone, which ask the adapter and not
    // these caps.
    let metal = info.backend == wgpu::Backend::Metal;
    let units = features.contains(MATRIX_UNITS) && !metal;
    let coop_off = (metal && !coop.is_empty()).then_some("on Metal kernels in MSL use them");
    let class = match info.device_type {
        wgpu::DeviceType::DiscreteGpu => DeviceClass::Discrete,
        wgpu::DeviceType::IntegratedGpu => DeviceClass::Integrated,
        wgpu::DeviceType::Cpu => DeviceClass::Cpu,
        wgpu::DeviceType::VirtualGpu | wgpu::DeviceType::Other => DeviceClass::Unknown,
    };
    // Shader model 6 has subgroups; FXC does not compile it.
    let fxc = info.backend == wgpu::Backend::Dx12 && !features.contains(wgpu::Features::SUBGROUP);
    // No driver ends long work on a CPU, but a browser may.
    let endless = class == DeviceClass::Cpu && info.backend != wgpu::Backend::BrowserWebGpu;
    Caps {
        name: info.name.clone(),
        class,
        f16: features.contains(wgpu::Features::SHADER_F16),
        subgroup_size: subgroup_size(info),
        msl_version: None,
        packed_products: packed_products(info.backend, fxc),
        fxc,
        coop: if units { coop } else { Vec::new() },
        coop_off,
        max_workgroup_bytes: limits.max_compute_workgroup_storage_size,
        max_invocations: limits.max_compute_invocations_per_workgroup,
        max_workgroup_size_x: limits.max_compute_workgroup_size_x,
        max_workgroups: limits.max_compute_workgroups_per_dimension,
        max_storage_buffers: limits.max_storage_buffers_per_shader_stage,
        max_binding_bytes: limits.max_storage_buffer_binding_size,
        max_buffer_bytes: limits.max_buffer_size,
        storage_alignment: limits.min_storage_buffer_offset_alignment,
        max_scratch_bytes: u64::MAX,
        max_submission_seconds: if endless { f64::INFINITY } else { PATIENCE },
    }
}

/// wgpu's description of an adapter, with a name even if wgpu gives none.
pub(crate) fn info_of(adapter: &wgpu::Adapter) -> wgpu::AdapterInfo {
    named(adapter.get_info())
}

/// The description with a name, even if wgpu gives none. Browsers give vendor and architecture in
/// place of a name; wgpu does not pass these on.
pub(crate) fn named(mut info: wgpu::AdapterInfo) -> wgpu::AdapterInfo {
    if info.name.is_empty() {
        let kind = match info.backend {
            wgpu::Backend::BrowserWebGpu => "WebGPU",
            other => backend_name(other),
        };
        info.name = format!("unnamed {kind} adapter");
    }
    info
}

/// Whether it is hardware rather than a software rasterizer.
pub(crate) fn is_hardware(adapter: &wgpu::Adapter) -> bool {
    adapter.get_info().device_type != wgpu::DeviceType::Cpu
}

/// Ranks a kind of adapter; the best has the highest rank. Hardware comes before software. Memory
/// of its own comes before the host's, unless low power is preferred.
pub(crate) fn rank(kind: wgpu::DeviceType, power: wgpu::PowerPreference) -> u32 {
    let low = power == wgpu::PowerPreference::LowPower;
    match kind {
        wgpu::DeviceType::DiscreteGpu => 4 - u32::from(low),
        wgpu::DeviceType::IntegratedGpu => 3 + u32::from(low),
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 1,
        wgpu::DeviceType::Cpu => 0,
    }
}

pub(crate) fn driver(info: &wgpu::AdapterInfo) -> String {
    format!("{} {}", info.driver, info.driver_info).trim().to_owned()
}

pub(crate) fn backend_name(backend: wgpu::Backend) -> &'static str {
    match backend {
        wgpu::Backend::Vulkan => "vulkan",
        wgpu::Backend::Metal => "metal",
        wgpu::Backend::Dx12 => "dx12",
        wgpu::Backend::Gl => "gl",
        wgpu::Backend::BrowserWebGpu => "browser-webgpu",
        wgpu::Backend::Noop => "noop",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_empty() {
        let info = |backend, name: &str| {
            let info = wgpu::AdapterInfo::new(wgpu::DeviceType::Other, backend);
            named(wgpu::AdapterInfo { name: name.into(), ..info }).name
        };
        assert_eq!(info(wgpu::Backend::BrowserWebGpu, ""), "unnamed WebGPU adapter");
        assert_eq!(info(wgpu::Backend::Gl, ""), "unnamed gl adapter");
        assert_eq!(info(wgpu::Backend::BrowserWebGpu, "X"), "X");
    }

    #[test]
    fn fxc_compiles_on_dx12_without_shader_model_6() {
        let own = |backend, features| {
            let info = wgpu::AdapterInfo::new(wgpu::DeviceType::DiscreteGpu, backend);
            caps(&info, features, &wgpu::Limits::default(), Vec::new())
        };
        let fxc = own(wgpu::Backend::Dx12, wgpu::Features::SHADER_F16);
        assert!(fxc.fxc && !fxc.unrolls());
        let PackedProducts::Absent(why) = fxc.packed_products else { panic!("{fxc:?}") };
        assert!(why.contains("dxcompiler.dll"), "{why}");
        for other in [
            own(wgpu::Backend::Dx12, wgpu::Features::SUBGROUP),
            own(wgpu::Backend::Vulkan, wgpu::Features::empty()),
        ] {
            assert!(!other.fxc && other.unrolls());
            assert_eq!(other.packed_products, PackedProducts::Instruction);
        }
    }

    #[test]
    fn power_chooses_between_discrete_and_integrated() {
        use wgpu::DeviceType::{Cpu, DiscreteGpu, IntegratedGpu, Other, VirtualGpu};
        use wgpu::PowerPreference::{HighPerformance, LowPower, None};
        let [discrete, integrated] = [DiscreteGpu, IntegratedGpu];
        for (power, [first, second]) in [
            (None, [discrete, integrated]),
            (HighPerformance, [discrete, integrated]),
            (LowPower, [integrated, discrete]),
        ] {
            let order = [Cpu, Other, VirtualGpu, second, first];
            assert!(order.is_sorted_by_key(|kind| rank(*kind, power)), "{power:?}");
        }
    }

    #[test]
    fn matrix_units_are_used_where_they_are_proven() {
        let (nvidia, amd, apple) = (0x10de, 0x1002, 0x106b);
        assert!(trusts_matrix_units(wgpu::Backend::Vulkan, nvidia));
        assert!(!trusts_matrix_units(wgpu::Backend::Vulkan, amd));
        assert!(!trusts_matrix_units(wgpu::Backend::Vulkan, apple));
        assert!(trusts_matrix_units(wgpu::Backend::Metal, 0));
    }
}
