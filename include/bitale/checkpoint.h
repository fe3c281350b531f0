// Checkpoints: everything a training run needs to continue, in one file.
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

// The variables and numbers that are saved and loaded together, by name. Describe it once, for both:
//     int epoch = 0;
//     double best = 1e9;
//     const Checkpoint state{params, updates, order, {"epoch", epoch}, {"best", best}};
//     save_checkpoint("run.safetensors", state);
//     load_checkpoint("run.safetensors", state);
// A checkpoint holds handles of the variables, and references to the numbers, which must outlive it. A
// variable that several parts name is saved once. Throws GraphError for a variable without a name, for two
// variables of one name, with the lines of both, for names with control characters, and for the name
// __metadata__.
class Checkpoint {
  public:
    struct Entry {
        std::string name;
        Where where;
        Shared variable{};  // one of these three
        Array* array = nullptr;
        void* number = nullptr;  // of type `dtype`
        DType dtype = float32;
        bool is_seed = false;  // the seed of a stream is compared, not loaded
        std::uint64_t seed = 0;
        std::string layout{};  // how a packed variable lays out its bytes
    };
    class Part {
      public:
        Part(const Shared& variable, Where where = Where::current());                // NOLINT
        Part(const std::vector<Shared>& variables, Where where = Where::current());  // NOLINT
        Part(const Parameters& parameters, Where where = Where::current());          // NOLINT
        // What the updates write, which is parameters and the state of optimizers, and the counters that they
        // read: those of random streams and StepCounters.
        Part(const Updates& updates, Where where = Where::current());  // NOLINT
        // The counter of a stream, saved as "random.counter", or as "drop.counter" for {"drop", stream}. If
        // there are several streams, each needs a name. Loading the counter of a stream with another seed is
        // an error.
        Part(const RandomStream& stream, Where where = Where::current());  // NOLINT
        Part(const std::string& name, const RandomStream& stream, Where where = Where::current());
        Part(const StepCounter& steps, Where where = Where::current());  // NOLINT
        // The packed bytes, and scale and offset if there are any. The file's metadata names the layout;
        // bytes of another layout are not loaded. Scale and offset are those of the file.
        Part(const PackedShared& variable, Where where = Where::current());  // NOLINT
        // A number of the program, of any arithmetic type but long double.
        template <Number T>
        requires(!std::is_const_v<T> && !std::is_same_v<T, long double>)
            Part(std::string name, T& number, Where where = Where::current())
            : Part(std::move(name), &number, dtype_of<T>(), where) {}
        // An array of the program, such as a history of losses. Loading gives it the dtype and shape of the
        // file.
        Part(std::string name, Array& array, Where where = Where::current());

      private:
        friend class Checkpoint;
        Part(std::string name, void* number, DType dtype, Where where);
        void add(const Shared& variable, Where where);
        std::vector<Entry> entries_;
        MovedMark mark_;
    };
    Checkpoint(std::initializer_list<Part> parts);

    // Throws GraphError for a checkpoint that was moved from.
    const std::vector<Entry>& entries(Where where = Where::current()) const {
        mark_.refuse("a checkpoint", where);
        return entries_;
    }

  private:
    std::vector<Entry> entries_;
    MovedMark mark_;
};

// Saves a checkpoint in the format that the path ends with, .npz or .safetensors. The file is replaced as a
// whole, as save_npz does. Packed variables are uint8 in both formats, and "__metadata__" names their
// layouts; in .npz that is an entry with JSON text. As .npz has no bfloat16, such values are saved there as
// uint16, and the same entry names their dtype. Variables are read one after another, so save between calls
// that write them, not during one. Throws FileError, with the path.
void save_checkpoint(const std::string& path, const Checkpoint& checkpoint, SaveOptions options = {},
                     Where where = Where::current());

struct LoadCheckpointOptions {
    // false: variables and numbers that are missing in the file keep their values, and what only the file has
    // is ignored.
    bool strict = true;
    LoadLimits limits{};
};
struct LoadedCheckpoint {
    std::vector<std::string> missing, surplus;  // names in the checkpoint only, and in the file only
};
// Sets the variables and numbers to the values in the file. If anything is missing, surplus, of another dtype
// or shape, or of a stream with another seed, throws FileError, which lists all of it, and changes nothing.
// Training that continues from a checkpoint gives the same bits as training that was never interrupted.
LoadedCheckpoint load_checkpoint(const std::string& path, const Checkpoint& checkpoint,
                                 LoadCheckpointOptions options = {}, Where where = Where::current());

// Arrays by name in Hugging Face's safetensors format, of every dtype. Files are replaced as a whole, and
// limits and names are those of load_npz and save_npz. Throws FileError, also for elements that no dtype of
// Bitale holds: those of fewer than 8 bits, and floats of 8 bits.
std::map<std::string, Array> load_safetensors(const std::string& path, LoadLimits limits = {},
                                              Where where = Where::current());
void save_safetensors(const std::string& path, const std::map<std::string, Array>& values,
                      SaveOptions options = {}, Where where = Where::current());

}  // namespace bitale

#pragma GCC visibility pop
