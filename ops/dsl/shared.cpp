// Shared variables as the user holds them.
#include "graph/ir/shared.h"

#include "bitale/expr.h"
#include "graph/base/border.h"
#include "graph/base/lines.h"
#include "graph/base/text.h"
#include "graph/ir/borrowed.h"

namespace bitale {

namespace {

SharedState& state_of(const std::shared_ptr<SharedState>& state, Where where) {
    if (!state)
        throw GraphError(of_user(where),
                         "an empty shared variable is used, or one that was moved from; create it with "
                         "shared(value, name)");
    return *state;
}

const ApiBorder making_shared("for a shared variable"),
    getting_shared("to get the value of a shared variable"),
    setting_shared("to set the value of a shared variable, which is as before");

}  // namespace

Shared shared(const Array& value, std::string name, Where where) {
    return making_shared([&] {
        auto state = std::make_shared<SharedState>();
        state->name = std::move(name);
        state->where = where;
        state->value = ArrayMemory::own(value);
        return Shared(std::move(state));
    });
}

Array Shared::get_value(Where where) const {
    return getting_shared([&] {
        SharedState& state = state_of(state_, where);
        {
            const Reading reading(state.turns);
            if (!state.fetch) return state.value;
        }
        const WritingValue writing(state);
        state.bring_home();
        return state.value;
    });
}

void Shared::set_value(const Array& value, Where where) const {
    setting_shared([&] {
        SharedState& state = state_of(state_, where);
        const WritingValue writing(state);
        const std::string subject = "set_value of the shared variable " + in_quotes(state.name) +
                                    (state.where.line ? " at " + state.where.text() : "") + ": ";
        if (value.dtype() != state.value.dtype())
            throw TypeError(where, subject + "it holds " + std::string(name_of(state.value.dtype())) +
                                       ", the value is " + std::string(name_of(value.dtype())) +
                                       "; convert it, as in value.as(" +
                                       std::string(name_of(state.value.dtype())) + ")");
        if (value.shape() != state.value.shape())
            throw ShapeError(where, subject + "its shape is " + text_of(state.value.shape()) +
                                        ", that of the value " + text_of(value.shape()) +
                                        (value.rank() == 1 && value.size() == 0
                                             ? "; the value is an empty Array, as Array() makes it"
                                             : "; a shape is fixed when the variable is created"));
        std::list<Array> copy{ArrayMemory::own(value)};  // what may fail comes first
        state.take_value(copy);
        state.fetch = nullptr;
        ++state.version;
    });
}

const std::string& Shared::name(Where where) const { return state_of(state_, where).name; }

DType Shared::dtype(Where where) const {
    SharedState& state = state_of(state_, where);
    const Reading reading(state.turns);
    return state.value.dtype();
}

Dims Shared::shape(Where where) const {
    SharedState& state = state_of(state_, where);
    const Reading reading(state.turns);
    return getting_shared([&] { return state.value.shape(); });
}

}  // namespace bitale
