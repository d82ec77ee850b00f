struct Item {
    key: u32,
    at: vec3<f32>,
    turn: mat2x2<f32>,
    flags: array<bool, 3>,
}

var<private> counter: u32 = 7u;

fn change(item: ptr<function, Item>, by: u32) {
    (*item).key += by;
    item.at.y = f32(by);
}

fn add_to_counter(by: u32) {
    counter = counter * 2u + by;
}
