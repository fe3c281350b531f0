// oneDNN by itself on the kernels (g), without reorders around its primitives: each form keeps its data in
// the layout it likes. Forms: sgemm, matmul; nchw, nhwc, any (convolution, pooling); plain (the others).
#include <dnnl.h>

#include <cstdint>
#include <dnnl.hpp>
#include <fstream>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/serve.h"

using bench::Json;
using dnnl::memory;
using dims = memory::dims;
using Type = memory::data_type;
using Tag = memory::format_tag;

namespace {

// What the run consists of: primitives with their arguments, or a call of dnnl_sgemm.
class Work {
  public:
    virtual ~Work() = default;
    virtual void run() = 0;
};

[[noreturn]] void not_supported(const std::string& what) { throw std::invalid_argument(what); }

class Sgemm : public Work {
  public:
    explicit Sgemm(const Json& k) : m_(k.at("m")), n_(k.at("n")), k_(k.at("k")) {
        const auto form = k.at("form").get<std::string>();
        a_turned_ = form[0] == 'T', b_turned_ = form[1] == 'T';
        const auto size = [](std::int64_t a, std::int64_t b) { return static_cast<std::size_t>(a * b); };
        a_.assign(size(m_, k_), 0.5F), b_.assign(size(k_, n_), 0.5F), c_.assign(size(m_, n_), 0);
    }
    void run() override {
        dnnl_sgemm(a_turned_ ? 'T' : 'N', b_turned_ ? 'T' : 'N', m_, n_, k_, 1, a_.data(),
                   a_turned_ ? m_ : k_, b_.data(), b_turned_ ? k_ : n_, 0, c_.data(), n_);
    }

  private:
    std::int64_t m_, n_, k_;
    bool a_turned_ = false, b_turned_ = false;
    std::vector<float> a_, b_, c_;
};

#if DNNL_VERSION_MAJOR == 2

class Primitives : public Work {
  public:
    void run() override {
        for (const Call& call : calls_) call.primitive.execute(stream_, call.arguments);
        stream_.wait();
    }

  protected:
    struct Call {
        dnnl::primitive primitive;
        std::unordered_map<int, memory> arguments;
    };
    // Of memory that holds something else than zeros.
    memory filled(const memory::desc& desc) {
        memory r(desc, engine_);
        auto* data = static_cast<std::uint8_t*>(r.get_data_handle());
        if (desc.data_type() == Type::f32) {
            auto* values = reinterpret_cast<float*>(data);
            for (std::size_t k = 0; k < desc.get_size() / sizeof(float); ++k)
                values[k] = static_cast<float>(k % 97) * 0.01F;
        } else {
            for (std::size_t k = 0; k < desc.get_size(); ++k) data[k] = static_cast<std::uint8_t>(k % 251);
        }
        return r;
    }
    dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream_{engine_};
    std::vector<Call> calls_;
};

class Matmul : public Primitives {
  public:
    explicit Matmul(const Json& k) {
        const memory::dim m = k.at("m"), n = k.at("n"), depth = k.at("k");
        const auto form = k.at("form").get<std::string>();
        const memory::desc a({m, depth}, Type::f32, form[0] == 'N' ? Tag::ab : Tag::ba),
            b({depth, n}, Type::f32, form[1] == 'N' ? Tag::ab : Tag::ba), c({m, n}, Type::f32, Tag::ab);
        const dnnl::matmul::primitive_desc plan(dnnl::matmul::desc(a, b, c), engine_);
        calls_.push_back(
            {dnnl::matmul(plan),
             {{DNNL_ARG_SRC, filled(a)}, {DNNL_ARG_WEIGHTS, filled(b)}, {DNNL_ARG_DST, filled(c)}}});
    }
};

Tag tag_of(const std::string& form) {
    if (form == "nchw") return Tag::nchw;
    if (form == "nhwc") return Tag::nhwc;
    return Tag::any;
}

class Convolution : public Primitives {
  public:
    Convolution(const Json& k, const std::string& form) {
        const auto shape = k.at("shape").get<dims>();
        const memory::dim filters = k.at("filters"), kernel = k.at("kernel");
        const memory::dim border = k.at("border") == "half" ? kernel / 2 : 0, lost = kernel - 1 - 2 * border;
        const Tag tag = tag_of(form);
        const memory::desc x(shape, Type::f32, tag),
            w({filters, shape[1], kernel, kernel}, Type::f32, Tag::any),
            y({shape[0], filters, shape[2] - lost, shape[3] - lost}, Type::f32, tag);
        const dims ones{1, 1}, pads{border, border};
        const dnnl::convolution_forward::primitive_desc forward(
            {dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_auto, x, w, y, ones, pads, pads},
            engine_);
        const auto pass = k.at("pass").get<std::string>();
        if (pass == "forward") {
            calls_.push_back({dnnl::convolution_forward(forward),
                              {{DNNL_ARG_SRC, filled(forward.src_desc())},
                               {DNNL_ARG_WEIGHTS, filled(forward.weights_desc())},
                               {DNNL_ARG_DST, filled(forward.dst_desc())}}});
        } else if (pass == "weights") {
            const dnnl::convolution_backward_weights::primitive_desc plan(
                {dnnl::algorithm::convolution_auto, x, w, y, ones, pads, pads}, engine_, forward);
            calls_.push_back({dnnl::convolution_backward_weights(plan),
                              {{DNNL_ARG_SRC, filled(plan.src_desc())},
                               {DNNL_ARG_DIFF_WEIGHTS, filled(plan.diff_weights_desc())},
                               {DNNL_ARG_DIFF_DST, filled(plan.diff_dst_desc())}}});
        } else {
            const dnnl::convolution_backward_data::primitive_desc plan(
                {dnnl::algorithm::convolution_auto, x, w, y, ones, pads, pads}, engine_, forward);
            calls_.push_back({dnnl::convolution_backward_data(plan),
                              {{DNNL_ARG_DIFF_SRC, filled(plan.diff_src_desc())},
                               {DNNL_ARG_WEIGHTS, filled(plan.weights_desc())},
                               {DNNL_ARG_DIFF_DST, filled(plan.diff_dst_desc())}}});
        }
    }
};

class Pooling : public Primitives {
  public:
    Pooling(const Json& k, const std::string& form) {
        const auto shape = k.at("shape").get<dims>();
        const memory::dim window = k.at("window"), stride = k.at("stride");
        const auto out = [&](memory::dim n) { return (n - window) / stride + 1; };
        const dims pooled{shape[0], shape[1], out(shape[2]), out(shape[3])}, windows{window, window},
            strides{stride, stride}, pads{0, 0};
        // Pooling has no layout of its own liking: a blocked one is that of convolutions.
        const Tag tag = form == "any" ? Tag::nChw16c : tag_of(form);
        const memory::desc x(shape, Type::f32, tag), y(pooled, Type::f32, tag);
        const dnnl::pooling_forward::primitive_desc forward(
            {dnnl::prop_kind::forward_training, dnnl::algorithm::pooling_max, x, y, strides, windows, pads,
             pads},
            engine_);
        const dnnl::pooling_backward::primitive_desc backward(
            {dnnl::algorithm::pooling_max, x, y, strides, windows, pads, pads}, engine_, forward);
        const memory winners(forward.workspace_desc(), engine_);
        calls_.push_back(
            {dnnl::pooling_forward(forward),
             {{DNNL_ARG_SRC, filled(x)}, {DNNL_ARG_DST, filled(y)}, {DNNL_ARG_WORKSPACE, winners}}});
        calls_.push_back({dnnl::pooling_backward(backward),
                          {{DNNL_ARG_DIFF_DST, filled(y)},
                           {DNNL_ARG_DIFF_SRC, filled(x)},
                           {DNNL_ARG_WORKSPACE, winners}}});
    }
};

class Softmax : public Primitives {
  public:
    explicit Softmax(const Json& k) {
        const memory::desc x(k.at("shape").get<dims>(), Type::f32, Tag::ab);
        const dnnl::softmax_forward::primitive_desc plan({dnnl::prop_kind::forward_inference, x, 1}, engine_);
        calls_.push_back(
            {dnnl::softmax_forward(plan), {{DNNL_ARG_SRC, filled(x)}, {DNNL_ARG_DST, filled(x)}}});
    }
};

class LayerNorm : public Primitives {
  public:
    explicit LayerNorm(const Json& k) {
        const auto shape = k.at("shape").get<dims>();
        const memory::desc x(shape, Type::f32, Tag::ab), columns({shape[1]}, Type::f32, Tag::a);
        using Flags = dnnl::normalization_flags;
        const dnnl::layer_normalization_forward::primitive_desc plan(
            {dnnl::prop_kind::forward_inference, x, 1e-5F, Flags::use_scale | Flags::use_shift}, engine_);
        calls_.push_back({dnnl::layer_normalization_forward(plan),
                          {{DNNL_ARG_SRC, filled(x)},
                           {DNNL_ARG_DST, filled(x)},
                           {DNNL_ARG_SCALE, filled(columns)},
                           {DNNL_ARG_SHIFT, filled(columns)}}});
    }
};

// Of bytes or numbers, over the leading axis or all.
class Reduction : public Primitives {
  public:
    Reduction(const dims& shape, Type type, dnnl::algorithm algorithm, bool all) {
        const memory::desc x(shape, type, Tag::ab), y({1, all ? 1 : shape[1]}, Type::f32, Tag::ab);
        const dnnl::reduction::primitive_desc plan({algorithm, x, y, 0, 0}, engine_);
        calls_.push_back({dnnl::reduction(plan), {{DNNL_ARG_SRC, filled(x)}, {DNNL_ARG_DST, filled(y)}}});
    }
};

// A reorder between two layouts of the same tensor.
class Transpose : public Primitives {
  public:
    explicit Transpose(const Json& k) {
        const auto shape = k.at("shape").get<dims>();
        const auto axes = k.at("axes").get<std::vector<std::size_t>>();
        dims from(shape.size()), to(shape.size());
        memory::dim step = 1;
        for (std::size_t axis = shape.size(); axis-- > 0;) from[axis] = step, step *= shape[axis];
        step = 1;
        for (std::size_t k2 = axes.size(); k2-- > 0;) to[axes[k2]] = step, step *= shape[axes[k2]];
        memory source = filled(memory::desc(shape, Type::f32, from)),
               target = filled(memory::desc(shape, Type::f32, to));
        calls_.push_back({dnnl::reorder(source, target), {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}}});
    }
};

std::unique_ptr<Work> primitives(const Json& k, const std::string& op, const std::string& form) {
    if (op == "gemm") return std::make_unique<Matmul>(k);
    if (op == "conv") return std::make_unique<Convolution>(k, form);
    if (op == "pool") return std::make_unique<Pooling>(k, form);
    if (op == "softmax") return std::make_unique<Softmax>(k);
    if (op == "layer_norm") return std::make_unique<LayerNorm>(k);
    if (op == "transpose") return std::make_unique<Transpose>(k);
    if (op == "columns")
        return std::make_unique<Reduction>(k.at("shape").get<dims>(), Type::f32,
                                           dnnl::algorithm::reduction_sum, false);
    if (op == "mean")
        return std::make_unique<Reduction>(k.at("shape").get<dims>(), Type::u8,
                                           dnnl::algorithm::reduction_mean, true);
    not_supported("no primitive for it");
}

#else

std::unique_ptr<Work> primitives(const Json&, const std::string&, const std::string&) {
    not_supported("measured by the primitives of oneDNN 2, the library here is of another generation");
}

#endif

}  // namespace

int main() {
    std::ifstream file(KERNELS);
    const Json description = Json::parse(file);
    std::unordered_map<std::string, std::unique_ptr<Work>> forms;
    std::string kernel;
    return bench::serve([&](const Json& request) -> Json {
        if (request.contains("version")) {
            const dnnl_version_t* v = dnnl_version();
            return {{"version", std::to_string(v->major) + "." + std::to_string(v->minor) + "." +
                                    std::to_string(v->patch)}};
        }
        if (request.contains("setup")) {
            const auto name = request["setup"].get<std::string>(),
                       form = request.at("form").get<std::string>();
            if (name != kernel) forms.clear();  // of one kernel at a time
            kernel = name;
            const Json& k = description.at("kernels").at(name);
            const bench::Clock clock;
            try {
                if (form == "sgemm")
                    forms[form] = std::make_unique<Sgemm>(k);
                else
                    forms[form] = primitives(k, k.at("op"), form);
            } catch (const std::invalid_argument& error) {
                return {{"not_supported", error.what()}};
            }
            return {{"setup_s", clock.seconds()}};
        }
        Work& work = *forms.at(request.at("form").get<std::string>());
        const auto steps = request.at("steps").get<std::int64_t>();
        for (std::int64_t k = request.value("warm", std::int64_t{1}); k > 0; --k) work.run();
        const bench::Clock clock;
        for (std::int64_t k = 0; k < steps; ++k) work.run();
        return {{"ms", clock.seconds() * 1e3 / static_cast<double>(steps)}};
    });
}
