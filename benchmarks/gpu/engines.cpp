#include "gpu/engines.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bitale/error.h"
#include "common/networks.h"
#include "gpu/definition.h"
#include "gpu/describe.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/cudnn_graph.h"
#include "runtime/cuda/libraries.h"

using namespace bitale;
using namespace bitale::cuda;

namespace bench {

namespace {

constexpr int algorithms = 8, samples = 256;

// Sums of float32 over a hundred thousand terms have errors of some 1e-5; factors rounded to TF32 make them
// 4e-4, and to bfloat16 3e-3.
double bound_of(Precision precision) { return precision == Precision::float32 ? 1e-4 : 2e-3; }

// A handle of its own, which lives as long as the process: so do those of the device.
DnnHandle* handle_of(const CudnnTable& library) {
    static DnnHandle* handle = nullptr;
    if (!handle && library.cudnnCreate(&handle) != 0) throw DeviceError("cudnnCreate fails");
    return handle;
}

class Engines {
  public:
    Engines(Machine& machine, Record& record, EngineSetting setting)
        : machine_(machine), record_(record), setting_(std::move(setting)) {
        found_ = {{"workload", setting_.workload},
                  {"precision", name_of(setting_.precision)},
                  {"bound", bound_of(setting_.precision)},
                  {"calls", Json::array()}};
    }

    Json run() {
        // Libraries get products of 24 rows and more. Generated kernels do not run here.
        const std::int64_t batch = !setting_.reduced ? 0 : setting_.workload == "d" ? 4 : 24;
        const Workload w =
            compile(setting_.workload, data_of(setting_.workload, "", setting_.reduced ? reduced_images : 0),
                    {.device = setting_.device, .batch = batch, .precision = setting_.precision});
        found_["batch"] = w.batch;
        std::vector<std::string> seen;
        for (const LibraryCall& call : library_calls(w.step, std::int64_t{0})) {
            const std::string text = text_of(call);
            if (std::find(seen.begin(), seen.end(), text) != seen.end()) continue;
            seen.push_back(text);
            found_["calls"].push_back({{"call", text}, {"title", call.title}, {"engines", Json::array()}});
            try {
                if (call.convolution)
                    convolution(call.conv);
                else
                    product(call.product);
            } catch (const DeviceError& e) {
                found_["calls"].back()["why"] = e.what();
                failed(text, e.what());
            }
        }
        if (!wrong_.empty()) throw Wrong(wrong_, found_);
        if (seen.empty()) throw NotHere("no call of this step goes to a library");
        return found_;
    }

  private:
    void failed(const std::string& what, const std::string& why) {
        wrong_ += fmt::format("{}{}: {}", wrong_.empty() ? "" : "; ", what, why);
        if (const std::string gone = machine_.gone(); !gone.empty()) throw Wrong(wrong_, found_);
    }

    Json& call() { return found_["calls"].back(); }

    // Median of what `run` puts into the stream.
    double microseconds(const std::function<void()>& run) {
        const int calls = setting_.reduced ? 1 : 10;
        const auto many = [&] {
            for (int k = 0; k < calls; ++k) run();
        };
        return 1e6 / calls * median_of(setting_.reduced ? 1 : 5, [&] { return machine_.seconds(many); });
    }

    // What Bitale itself takes, in words.
    void chosen(const std::function<void()>& run, const std::function<std::string()>& choice) {
        record_.set("launching",
                    "the library's call that Bitale makes: " + call()["call"].get<std::string>());
        try {
            run();
            machine_.wait();
            call()["chosen"] = choice();
        } catch (const DeviceError& e) {
            call()["chosen"] = std::string("none: ") + e.what();
            failed(call()["call"], e.what());
        }
        record_.found(found_);
    }

    // Times and checks one that qualifies, and adds it.
    void add(Json entry, const std::function<void()>& run, const Block& result, std::size_t count,
             const Sample& sample) {
        const std::string name = entry["engine"];
        entry["chosen"] = call()["chosen"].get<std::string>().find("'s " + name) != std::string::npos;
        entry["state"] = "running";
        call()["engines"].push_back(entry);
        record_.set("launching", name);
        record_.found(found_);
        std::string why;
        try {
            machine_.fill(result.data(), 0xff, count * sizeof(float));
            entry["us"] = microseconds(run);
            const double error = sample.error_of(machine_.floats(result, count));
            entry["error"] = error;
            if (!(error <= bound_of(setting_.precision))) why = fmt::format("error {:.3g}", error);
        } catch (const DeviceError& e) {
            why = e.what();
        }
        entry["state"] = why.empty() ? "passed" : "failed";
        if (!why.empty()) entry["why"] = why;
        call()["engines"].back() = std::move(entry);
        record_.found(found_);
        if (!why.empty()) failed(name, why);
    }

    void product(const GemmShape& shape) {
        const Backend& backend = machine_.backend();
        const ProductData data = random_data(shape);
        const Sample sample = sample_of(shape, data, samples);
        const Block a = machine_.block(data.a), b = machine_.block(data.b), bias = machine_.block(data.bias);
        const auto count = static_cast<std::size_t>(shape.m * shape.n);
        const Block c(machine_, count * sizeof(float));
        const float* const added = shape.bias ? bias.floats() : nullptr;
        chosen([&] { backend.gemm(shape, a.floats(), b.floats(), added, c.floats(), machine_.stream()); },
               [&] { return backend.gemm_algorithm(shape); });
        CublasLt& library = products();
        for (const LtPlan& plan : library.proposals(shape, added, algorithms))
            add(
                {{"engine", library.text_of(plan)}, {"qualifies", true}, {"workspace_bytes", plan.workspace}},
                [&] {
                    library.multiply_with(plan, shape, a.floats(), b.floats(), added, c.floats(),
                                          machine_.stream());
                },
                c, count, sample);
    }

    void convolution(const ConvShape& shape) {
        const Backend& backend = machine_.backend();
        const ConvolutionData data = random_data(shape);
        const Sample sample = sample_of(shape, data, samples);
        const Block image = machine_.block(data.image), filters = machine_.block(data.filters),
                    output = machine_.block(data.output), bias = machine_.block(data.bias);
        const ConvData at{image.data(), filters.data(), output.data(), shape.bias ? bias.data() : nullptr};
        const bool forward = shape.kind == ConvCall::Kind::forward,
                   of_image = shape.kind == ConvCall::Kind::image_gradient;
        const Block& result = forward ? output : of_image ? image : filters;
        const std::size_t count = (forward ? data.output : of_image ? data.image : data.filters).size();
        chosen([&] { backend.conv(shape, at, machine_.stream()); },
               [&] { return backend.conv_algorithm(shape); });
        const CudnnTable& library = cudnn_library().table;
        DnnHandle* const handle = handle_of(library);
        std::vector<ConvEngine> seen;
        const auto look = [&](ConvProposal p) {
            if (std::find(seen.begin(), seen.end(), p.engine) != seen.end()) return true;
            seen.push_back(p.engine);
            Json entry = json_of(p);
            if (!p.plan) {
                call()["engines"].push_back(std::move(entry));
                record_.found(found_);
                return true;
            }
            std::optional<Block> workspace;
            try {
                workspace.emplace(machine_, static_cast<std::size_t>(p.plan->workspace));
            } catch (const DeviceError& e) {
                entry.update({{"state", "failed"}, {"why", e.what()}});
                call()["engines"].push_back(entry);
                failed(entry["engine"], e.what());
                return true;
            }
            add(
                std::move(entry),
                [&] {
                    execute(library, handle, shape, *p.plan, at,
                            p.plan->workspace ? workspace->data() : nullptr, machine_.stream());
                },
                result, count, sample);
            return true;
        };
        const std::string failure =
            for_each_proposal(library, shape, {handle, ""}, Cudnn::most_workspace, look);
        if (!failure.empty()) {
            call()["why"] = failure;
            failed("the heuristics", failure);
        }
    }

    static Json json_of(const ConvProposal& p) {
        Json notes = Json::array();
        for (const auto& [has, note] : {std::pair{p.notes.tensor_cores, "tensor cores"},
                                        {!p.notes.deterministic, "not deterministic"},
                                        {p.notes.runtime_compiled, "compiled at run time"},
                                        {p.notes.down_converts, "inputs of fewer bits"},
                                        {p.notes.reduced_sums, "sums of fewer bits"},
                                        {p.notes.keeps_nan, "strict with NaN"}})
            if (has) notes.push_back(note);
        Json entry = {{"engine", p.plan ? text_of(*p.plan) : text_of(p.engine)},
                      {"qualifies", p.plan.has_value()},
                      {"notes", notes}};
        if (p.plan)
            entry["workspace_bytes"] = p.plan->workspace;
        else
            entry["why"] = p.refusal;
        return entry;
    }

    CublasLt& products() {
        if (!products_)
            products_ = std::make_unique<CublasLt>(cublaslt_library().table, machine_.runtime(),
                                                   *machine_.backend().ledger);
        return *products_;
    }

    Machine& machine_;
    Record& record_;
    const EngineSetting setting_;
    Json found_;
    std::string wrong_;
    std::unique_ptr<CublasLt> products_;
};

}  // namespace

Json probe_engines(Machine& machine, Record& record, const EngineSetting& setting) {
    if (!machine.backend().gemm_algorithm || !machine.backend().conv_algorithm)
        throw NotHere("this device has no libraries to choose from");
    if (!machine.backend().has_gemm() && !machine.backend().has_conv())
        throw NotHere("neither cuBLASLt nor cuDNN");
    return Engines(machine, record, setting).run();
}

}  // namespace bench
