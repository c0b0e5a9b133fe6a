// All disk access after start-up. Long reads run on one thread and everything else on another, so that a slow SD card never blocks the
// loop. Files are replaced by rename(2), so SIGKILL loses no acknowledged value. fsync runs at most every 10 s and at the end, because
// SD cards wear out.

import Glibc
import Logging
import Protocols
import ServiceRuntime

/// The state directory and the thread that writes to it.
@Loop final class Disk {
  let directory: String
  private let log = Logger(label: "vehicled")
  private let worker = Worker()
  private lazy var reader = Worker()
  private static let maxFinishDuration: Nanoseconds = 400 * .millisecond
  private var unsynced: Set<String> = []
  private lazy var syncTimer = Timer { [weak self] _ in self?.sync() }

  /// Uses `directory` as the state directory, which need not exist.
  init(directory: String) {
    self.directory = directory
  }

  /// Locks the state directory until this process ends: with two writers, one would lose acknowledged values. On a read-only disk or
  /// a file system without locks the daemon runs without the lock.
  func lock() async throws(ValueError) {
    let directory = directory
    let result: Result<Void, ValueError> = await withCheckedContinuation { continuation in
      run({ () throws(ValueError) in try Files.lockState(directory) }, then: { continuation.resume(returning: $0) })
    }
    try result.get()
  }

  /// Runs blocking work on the disk's thread; `finish` gets its result on the loop.
  func run<Value: Sendable>(
    _ work: @escaping @Sendable () throws(ValueError) -> Value,
    then finish: @escaping @Loop @Sendable (Result<Value, ValueError>) -> Void
  ) {
    worker.run(work, then: finish)
  }

  /// Runs long reads on a separate thread; `finish` gets the result on the loop.
  func read<Value: Sendable>(
    _ work: @escaping @Sendable () throws(ValueError) -> Value,
    then finish: @escaping @Loop @Sendable (Result<Value, ValueError>) -> Void
  ) {
    reader.run(work, then: finish)
  }

  /// Stores a device's value for the next start. `finish` gets the error message, or nil.
  func store(device: String, key: String, _ bytes: [UInt8], then finish: @escaping @Loop @Sendable (String?) -> Void) {
    let folder = "\(directory)/devices/\(device)"
    run { [directory] () throws(ValueError) in
      try Files.makeDirectory("devices/\(device)", below: directory)
      if bytes.isEmpty {
        guard unlink("\(folder)/\(key)") == 0 || errno == ENOENT else {
          throw ValueError("cannot remove \(folder)/\(key): \(errnoMessage(errno))")
        }
      } else {
        try Files.replace("\(folder)/\(key)", with: bytes)
      }
    } then: { [weak self] result in
      switch result {
      case .success:
        self?.scheduleSync(of: folder)
        finish(nil)
      case .failure(let error): finish(error.description)
      }
    }
  }

  /// Reads all stored values of a device. A value that cannot be read is logged and skipped.
  func restore(device: String, then finish: @escaping @Loop @Sendable ([String: [UInt8]]) -> Void) {
    let folder = "\(directory)/devices/\(device)"
    let log = log
    run { () throws(ValueError) in
      var values: [String: [UInt8]] = [:]
      for key in Files.list(folder) where !key.hasPrefix(".") {
        do throws(ValueError) {
          values[key] = try Files.read("\(folder)/\(key)", limit: 1 << 20)
        } catch {
          log.error("\(error)", metadata: ["device": "\(device)"])
        }
      }
      return values
    } then: {
      finish((try? $0.get()) ?? [:])
    }
  }

  /// Syncs the disk, for at most 400 ms: a hanging SD card must not delay the end of the process. Call it last.
  func finish() async {
    let folders = unsynced
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let deadline = Timer { _ in continuation.resume() }
      deadline.set(Clock.monotonic() + Self.maxFinishDuration)
      let sync = { @Sendable () throws(ValueError) in folders.forEach(Files.sync) }
      run(sync) { _ in
        guard deadline.isSet else { return }
        deadline.set(nil)
        continuation.resume()
      }
    }
  }

  private func scheduleSync(of folder: String) {
    if unsynced.isEmpty { syncTimer.set(Clock.monotonic() + 10 * .second) }
    unsynced.insert(folder)
  }

  private func sync() {
    let folders = unsynced
    unsynced = []
    run({ () throws(ValueError) in folders.forEach(Files.sync) }, then: { _ in })
  }
}
