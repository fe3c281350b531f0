// Checkpoints: what a training run needs to go on, in one file.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "bitale/io.h"
#include "bitale/ops.h"
#include "bitale/packed.h"
#include "bitale/train.h"

#pragma GCC visibility push(default)

namespace bitale {

// The names of variables and numbers that are saved and loaded together. Write it once, for both:
//     int epoch = 0;
//     double best = 1e9;
//     const Checkpoint state{params, updates, order, {"epoch", epoch}, {"best", best}};
//     save_checkpoint("run.safetensors", state);
//     load_checkpoint("run.safetensors", state);
// A checkpoint holds handles of the variables and references to the numbers, which must outlive it. A
// variable that several parts name is in it once. Throws GraphError for variables without a name, for two of
// one name, with the lines of both, for names with control characters, and for the name __metadata__.
class Checkpoint {
  public:
    struct Entry {
        std::string name;
        Where where;
        Shared variable{};       // or
        Array* array = nullptr;  // or
        void* number = nullptr;  // of this dtype
        DType dtype = float32;
        bool is_seed = false;  // of a stream: compared, not loaded
        std::uint64_t seed = 0;
        std::string layout{};  // of the bytes of a packed variable
    };
    class Part {
      public:
        Part(const Shared& variable, Where where = Where::current());                // NOLINT
        Part(const std::vector<Shared>& variables, Where where = Where::current());  // NOLINT
        Part(const Parameters& parameters, Where where = Where::current());          // NOLINT
        // What the updates write, which is parameters and the state of optimizers, and the counters that they
        // read: of random streams and StepCounters.
        Part(const Updates& updates, Where where = Where::current());  // NOLINT
        // The counter of a stream, "random.counter", or "drop.counter" for {"drop", stream}: of several
        // streams, each needs a name. Loading it into a stream of another seed is an error.
        Part(const RandomStream& stream, Where where = Where::current());  // NOLINT
        Part(const std::string& name, const RandomStream& stream, Where where = Where::current());
        Part(const StepCounter& steps, Where where = Where::current());  // NOLINT
        // Its bytes as they are, and its scale and offset. The metadata of the file have its layout,
        // without which the bytes are not loaded; another scale or offset in the file is taken.
        Part(const PackedShared& variable, Where where = Where::current());  // NOLINT
        // A number of the program's own.
        template <Number T>
        requires(!std::is_const_v<T> && !std::is_same_v<T, long double>)
            Part(std::string name, T& number, Where where = Where::current())
            : Part(std::move(name), &number, dtype_of<T>(), where) {}
        // An array of the program's own, as a history of losses: dtype and shape are those of the file.
        Part(std::string name, Array& array, Where where = Where::current());

      private:
        friend class Checkpoint;
        Part(std::string name, void* number, DType dtype, Where where);
        void add(const Shared& variable, Where where);
        std::vector<Entry> entries_;
    };
    Checkpoint(std::initializer_list<Part> parts);

    const std::vector<Entry>& entries() const { return entries_; }

  private:
    std::vector<Entry> entries_;
};

// Writes the file as a whole, as save_npz does, in the format of the path's ending: .npz or .safetensors.
// Packed variables are uint8 in either, and "__metadata__" names their layouts: in .npz an entry, which is
// JSON text. As .npz has no name for bfloat16, its bytes are saved as uint16 there, and that entry names the
// dtype. Variables are read one after the other: save between the calls that write them. FileError, naming
// the path.
void save_checkpoint(const std::string& path, const Checkpoint& checkpoint, SaveOptions options = {},
                     Where where = Where::current());

struct LoadCheckpointOptions {
    // Off: variables and numbers that the file lacks stay as they are, and what else it has is passed over.
    bool strict = true;
    LoadLimits limits{};
};
struct LoadedCheckpoint {
    std::vector<std::string> missing, surplus;  // names in the checkpoint, in the file alone
};
// Sets variables and numbers to what the file says. FileError where anything does not fit, which names all
// that is missing, surplus, of another dtype or shape, or of a stream of another seed; nothing has changed
// then. Training that goes on from a checkpoint has the bits of training that was never interrupted.
LoadedCheckpoint load_checkpoint(const std::string& path, const Checkpoint& checkpoint,
                                 LoadCheckpointOptions options = {}, Where where = Where::current());

// The format of Hugging Face's safetensors, every dtype; arrays by name. As load_npz and save_npz: FileError,
// whole files, limits, names without control characters. FileError for elements of fewer than 8 bits or of 8
// bits that are floats, which no bitale dtype can hold.
std::map<std::string, Array> load_safetensors(const std::string& path, LoadLimits limits = {});
void save_safetensors(const std::string& path, const std::map<std::string, Array>& values,
                      SaveOptions options = {});

}  // namespace bitale

#pragma GCC visibility pop
