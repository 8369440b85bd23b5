"""Record a PyTorch model through its own hooks, with the names that SageMaker Debugger's hook gives."""

from __future__ import annotations

from smdbg_core import StepWriter


def record(model, loss_module, step: StepWriter) -> list:
    """Hook a model and its loss for one training step; call `remove()` on what is returned afterwards."""
    root = type(model).__name__

    def outputs(path):
        def hook(module, inputs, output):
            for index, value in enumerate(inputs):
                step.add(f"{path}_input_{index}", value.detach().cpu().numpy())
            step.add(f"{path}_output_0", output.detach().cpu().numpy())

        return hook

    handles = [loss_module.register_forward_hook(outputs(type(loss_module).__name__))]
    for path, module in model.named_modules():
        handles.append(module.register_forward_hook(outputs(path or root)))
    for name, parameter in model.named_parameters():
        full = f"{root}_{name}"
        step.add(full, parameter.detach().cpu().numpy())
        if parameter.requires_grad:
            save = lambda gradient, full=full: step.add(f"gradient/{full}", gradient.cpu().numpy())  # noqa: E731
            handles.append(parameter.register_hook(save))
    return handles
