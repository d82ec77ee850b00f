var<workgroup> tile: array<Item, 64>;
var<workgroup> best: u32;
let at = global_id.x;
let lane = local_index;
tile[lane].key = u[at] % 97u;
tile[lane].at = vec3<f32>(f[at], f32(lane), 2.0);
tile[lane].turn[lane % 2u] = vec2<f32>(f32(lane), 1.0);
tile[lane].turn[(lane + 1u) % 2u] = vec2<f32>(0.5, f32(lane) * 2.0);
tile[lane].flags = array<bool, 3>(lane % 2u == 0u, lane % 3u == 0u, lane % 5u == 0u);
if (lane == 0u) {
    best = 41u;
}
let shown = workgroupUniformLoad(&best);
let other = tile[(lane + 17u) % 64u];
put(0u, other.key + shown);
put_f(1u, other.at.x);
put_f(2u, other.at[lane % 3u]);
put_f(3u, other.turn[1].y + 64.0 * other.turn[lane % 2u].x);
put(4u, u32(other.flags[lane % 3u]));
var local: array<Item, 3>;
for (var i = 0u; i < 3u; i += 1u) {
    local[i] = tile[(lane * 3u + i) % 64u];
}
var item = local[lane % 3u];
change(&item, 5u);
local[lane % 3u] = item;
put(5u, local[0].key + 100u * local[1].key + 10000u * local[2].key);
let copy = local;
put(6u, copy[(lane + 1u) % 3u].key);
counter += lane;
add_to_counter(3u);
put(7u, counter);
let table = array<u32, 5>(3u, 1u, 4u, 1u, 5u);
put(8u, table[lane % 5u]);
