// Convolutions as graphs of cuDNN's backend: building them, and choosing an engine. Needs neither a GPU nor a
// driver where the device is given as text.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/tables.h"
#include "runtime/exec/launcher.h"

namespace bitale::cuda {

// One of cuDNN's descriptors: attributes are set, then it is finalised and used by others.
class DnnObject {
  public:
    // Throws DeviceError with cuDNN's words, as everything here does.
    DnnObject(const CudnnTable& library, DnnKind kind);
    ~DnnObject();
    DnnObject(DnnObject&& other) noexcept;
    DnnObject& operator=(DnnObject&& other) noexcept;
    DnnObject(const DnnObject&) = delete;
    DnnObject& operator=(const DnnObject&) = delete;

    void set(DnnAttribute attribute, DnnType type, std::int64_t count, const void* values);
    void set(DnnAttribute attribute, DnnType type, int value);  // an enumerator
    void set(DnnAttribute attribute, const std::vector<std::int64_t>& values);
    void set(DnnAttribute attribute, const DnnObject& other);
    // Up to `room` values; how many there are.
    std::int64_t get(DnnAttribute attribute, DnnType type, std::int64_t room, void* values) const;
    void finalize(const char* what);
    DnnDescriptor* raw() const { return raw_; }

  private:
    const CudnnTable* table_;
    DnnDescriptor* raw_ = nullptr;
};

// Of which GPU a plan is made: the one of a handle, or one described as JSON (cuDNN 9.8).
struct DnnTarget {
    DnnHandle* handle = nullptr;
    std::string json;
};

// The numbers by which a plan knows its tensors.
enum DnnTensorId : std::int64_t { dnn_image = 1, dnn_filters = 2, dnn_output = 3, dnn_bias = 4 };

// One of cuDNN's engines, and what was chosen where it leaves a choice: enough to make the same plan again.
struct ConvEngine {
    std::int64_t index = 0;
    bool runtime_compiled = false;
    std::vector<std::pair<int, std::int64_t>> knobs;  // type and value, as cuDNN numbers them
    bool operator==(const ConvEngine&) const = default;
};

struct ConvPlan {
    DnnObject plan;
    std::int64_t workspace = 0;
    ConvEngine engine = {};
    bool tensor_cores = false;
    bool keeps_nan = false;  // cuDNN promises it of the engine
};
std::string text_of(const ConvEngine& engine);
std::string text_of(const ConvPlan& plan);  // for the report

// What cuDNN's notes say of an engine.
struct EngineNotes {
    bool tensor_cores = false, down_converts = false, reduced_sums = false, deterministic = true,
         keeps_nan = false, runtime_compiled = false;
    bool transforms =
        false;  // Winograd or FFT: rounds otherwise, and a NaN or infinity spreads to its neighbours
    bool operator==(const EngineNotes&) const = default;
};
// An engine that the heuristics propose for a convolution. It qualifies, and has a plan, where it is
// deterministic, needs at most so many bytes of workspace, and is as exact as the shape asks: without tensor
// cores, Winograd and FFT for float32.
struct ConvProposal {
    ConvEngine engine;
    EngineNotes notes;
    bool inexact = false;  // or not deterministic
    std::optional<ConvPlan> plan;
    std::string refusal;  // why there is no plan of it
};
// Shows the proposals to `look`, best first as the heuristics see them, until it returns false. Plans are
// made one at a time, when `look` comes to them. Returns why the heuristics failed; empty where they did not.
std::string for_each_proposal(const CudnnTable& library, const ConvShape& shape, const DnnTarget& target,
                              std::int64_t most_workspace, const std::function<bool(ConvProposal)>& look);

// The first proposal that qualifies. Throws DeviceError where none does.
ConvPlan plan_convolution(const CudnnTable& library, const ConvShape& shape, const DnnTarget& target,
                          std::int64_t most_workspace);
// That of an engine which was chosen before; nothing where it makes no plan any more, or none that qualifies.
std::optional<ConvPlan> plan_with(const CudnnTable& library, const ConvShape& shape, const DnnTarget& target,
                                  std::int64_t most_workspace, const ConvEngine& engine);

// Puts a convolution into the stream; `workspace` has the bytes that the plan wants.
void execute(const CudnnTable& library, DnnHandle* handle, const ConvShape& shape, const ConvPlan& plan,
             const ConvData& data, void* workspace, Stream stream);
// Where the tensors of a plan are, finalised: for cudnnBackendExecute.
DnnObject conv_arguments(const CudnnTable& library, const ConvShape& shape, const ConvData& data,
                         void* workspace);

}  // namespace bitale::cuda
