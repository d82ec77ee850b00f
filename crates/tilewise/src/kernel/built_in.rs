//! The built-in names that a body can use, besides the names of the call.

/// A built-in value as the body sees it.
pub(super) struct BuiltIn {
    pub(super) name: &'static str,
    pub(super) attribute: &'static str,
    pub(super) kind: &'static str,
}

const fn built_in(name: &'static str, attribute: &'static str, kind: &'static str) -> BuiltIn {
    BuiltIn { name, attribute, kind }
}

pub(super) const BUILT_IN: [BuiltIn; 9] = [
    built_in("global_id", "global_invocation_id", "vec3<u32>"),
    built_in("local_id", "local_invocation_id", "vec3<u32>"),
    built_in("workgroup_id", "workgroup_id", "vec3<u32>"),
    built_in("num_workgroups", "num_workgroups", "vec3<u32>"),
    built_in("local_index", "local_invocation_index", "u32"),
    built_in("subgroup_id", "subgroup_id", "u32"),
    built_in("num_subgroups", "num_subgroups", "u32"),
    built_in("subgroup_size", "subgroup_size", "u32"),
    built_in("subgroup_invocation_id", "subgroup_invocation_id", "u32"),
];
