// A network for images of the shape of CIFAR-10 as a newcomer writes it, in several forms: pooling over 4 x
// 4, or overlapping; one dense layer or two; labels, or distributions; momentum with weight decay. The images
// are made here.
#include <bitale/bitale.h>

#include <iostream>

using namespace bitale;

namespace {

struct Form {
    std::string name;
    bool overlapping;
    int dense;
    bool one_hot;
};

// Ten classes, each brighter in one colour in one part of the image.
Array make_images(std::int64_t count, const Array& labels, std::uint64_t seed) {
    Array images = uniform_values({count, 3, 32, 32}, 0, 150, seed).as(uint8);
    auto* pixels = static_cast<std::uint8_t*>(images.mutable_data());
    for (std::int64_t k = 0; k < count; ++k) {
        const auto label = labels.at<std::int64_t>(k);
        for (std::int64_t row = 0; row < 16; ++row)
            for (std::int64_t column = 0; column < 16; ++column)
                pixels[((k * 3 + label % 3) * 32 + row + (label / 3 % 2) * 16) * 32 + column +
                       (label / 6) * 16] += 100;
    }
    return images;
}

double error_after_training(const Form& form, const Array& images, const Array& labels) {
    const std::int64_t count = images.shape()[0], batch = 50, filters = 16;
    Shared data = shared(images, "images"), classes = shared(labels, "labels");
    Expr x = tensor4("x"), index = lscalar("index");
    Expr y = form.one_hot ? matrix("y") : ivector("y");

    Parameters params;
    const auto dense = [&](const Expr& h, std::int64_t from, std::int64_t to) {
        Parameters own = params.in("dense" + std::to_string(params.size()));
        Shared w = own.add("w", glorot_uniform({from, to}, params.size()));
        Shared b = own.add("b", zeros({to}));
        return dot(h, w) + b;
    };
    Shared w = params.add("conv.w", he_normal({filters, 3, 5, 5}, 7)),
           b = params.add("conv.b", zeros({filters}));
    Expr h = relu(conv2d((x - 128) / 128, w) + channel(b));                 // 28 x 28
    h = form.overlapping ? max_pool(h, 4, {.stride = 2}) : max_pool(h, 4);  // 13 x 13 or 7 x 7
    std::int64_t width = filters * (form.overlapping ? 13 * 13 : 7 * 7);
    h = flatten(h, 2);
    for (int layer = 0; layer < form.dense; ++layer, width = 100) h = relu(dense(h, width, 100));
    Expr p = softmax(dense(h, width, 10));
    Expr cost = mean(categorical_crossentropy(p, y));

    const Slice rows{index * batch, (index + 1) * batch};
    const Expr target = form.one_hot ? one_hot(classes[rows], 10) : classes[rows];
    Function train =
        function({index}, cost,
                 {.updates = momentum(cost, params, 0.01, {.momentum = 0.9, .weight_decay = 1e-4}),
                  .givens = {{x, cast(data[rows], float32)}, {y, target}},
                  .name = "train_" + form.name});
    for (int epoch = 0; epoch < 2; ++epoch) train.loop(0, count / batch);
    Function wrong = function({}, mean(neq(argmax(p, 1), classes)), {.givens = {{x, cast(data, float32)}}});
    return wrong();
}

}  // namespace

int main() try {
    const std::int64_t count = 1000;
    const Array labels = (permutation(count, 3) % 10).as(int32), images = make_images(count, labels, 5);
    for (const Form& form :
         {Form{"pooled_labels", false, 1, false}, Form{"overlapping_one_hot", true, 2, true}})
        std::cout << form.name << ": error " << 100 * error_after_training(form, images, labels) << " %\n";
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
