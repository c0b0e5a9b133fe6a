// A dedicated thread for blocking work: the message bus, and libcurl in the daemon.

import Glibc

/// Runs a closure on a new thread that blocks all signals, because the main thread handles them. Returns 0 or an errno.
public func startThread(_ body: @escaping () -> Void) -> CInt {
  final class Box {
    let body: () -> Void
    init(_ body: @escaping () -> Void) { self.body = body }
  }
  var (all, before) = (sigset_t(), sigset_t())
  sigfillset(&all)
  pthread_sigmask(SIG_BLOCK, &all, &before)
  defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
  var thread = pthread_t()
  let box = Unmanaged.passRetained(Box(body))
  let start: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { box in
    box.map { Unmanaged<Box>.fromOpaque($0).takeRetainedValue() }?.body()
    return nil
  }
  let code = pthread_create(&thread, nil, start, box.toOpaque())
  if code == 0 { pthread_detach(thread) } else { box.release() }
  return code
}
