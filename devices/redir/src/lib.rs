//! Device models behind QEMU's `usb-redir`, in step with the guest's virtual clock.
