// A machine that records its inputs and returns the effects that a test sets.

import CLinux
import Glibc
import Protocols
import Synchronization

@testable import vehicled

final class Probe: Sendable {
  struct Memory: Sendable {
    var inputs: [Input] = []
    var respond: @Sendable (Input, Instant, inout Effects) -> Void = { _, _, _ in }
    var nextWake: Instant?
    /// Whether its shutdown sequence ends at once; otherwise the test ends it.
    var endsAtOnce = true
  }

  let memory = Mutex(Memory())

  var inputs: [Input] { memory.withLock { $0.inputs } }

  /// The inputs as short texts for comparisons.
  var inputTexts: [String] {
    inputs.map {
      switch $0 {
      case .started(let restored, _): "started \(restored.keys.sorted())"
      case .linkChanged(let link, .up): "\(link) up"
      case .linkChanged(let link, .down): "\(link) down"
      case .linkChanged(let link, .refused): "\(link) refused"
      case .received(let link, let bytes): "\(link) received \(String(decoding: bytes, as: UTF8.self))"
      case .sent(let id, let failure): "sent \(id)\(failure.map { ": \($0)" } ?? "")"
      case .perform(_, .set(let property, let value)): "set \(property) \(value.text)"
      case .perform(_, .run(let action, _)): "run \(action)"
      case .cancelled: "cancelled"
      case .observed(let reference, let content): "observed \(reference) \(content)"
      case .response(let id, let response): "response \(id): \(response)"
      case .rows(let id, let answer): "rows \(id): \(answer)"
      case .time(let time): "time \(time.microseconds > 0)"
      case .stored(let key, let failure): "stored \(key)\(failure.map { ": \($0)" } ?? "")"
      case .leaseBegan: "lease"
      case .leaseEnded(let reason): "lease ended: \(reason)"
      case .wake: "wake"
      case .stopping: "stopping"
      }
    }
  }

  /// Sets the closure that appends the effects of each input from now on.
  func onInput(_ respond: @escaping @Sendable (Input, Instant, inout Effects) -> Void) {
    memory.withLock { $0.respond = respond }
  }

  func machine(_ schema: Schema = Schema()) -> ProbeMachine { ProbeMachine(schema: schema, probe: self) }
}

struct ProbeMachine: Machine {
  var schema: Schema
  let probe: Probe

  var nextWake: Instant? { probe.memory.withLock { $0.nextWake } }

  mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    let respond = probe.memory.withLock { memory in
      memory.inputs.append(input)
      memory.nextWake = nil
      return memory.respond
    }
    respond(input, now, &effects)
    if case .stopping = input, probe.memory.withLock({ $0.endsAtOnce }) { effects.append(.stopped) }
  }
}

/// A device with this probe as its machine.
@Loop func device(
  _ probe: Probe, named name: String = "probe", _ schema: Schema = Schema(), links: [(LinkName, LinkURL)] = [], disk: Disk? = nil,
  guardian: Guardian? = nil, http: HTTPClient? = nil
) -> Device {
  let disk = disk ?? Disk(directory: "/nonexistent/vehicled-tests")
  let services = Device.Services(
    disk: disk, links: LinkOpener(disk: disk, blueZ: BlueZ(SystemBus())), guardian: guardian ?? Guardian(), http: http ?? HTTPClient())
  return Device(
    name: name, kind: "probe", machine: probe.machine(schema), links: links.map { (LinkRole($0, schemes: []), $1) }, services: services)
}

/// Waits until a condition holds, for at least 30 s. Runs on the loop, because other tests may keep every CPU busy.
@Loop func until(_ condition: @Loop () -> Bool) async -> Bool {
  for _ in 0..<6000 {
    if condition() { return true }
    await withCheckedContinuation { continuation in
      Timer { _ in continuation.resume() }.set(Clock.monotonic() + 5 * .millisecond)
    }
  }
  return condition()
}

/// A new pseudo-terminal: the controller, the follower to keep open, and the follower's path.
func pseudoTerminal() -> (controller: CInt, follower: CInt, path: String) {
  var (controller, follower): (CInt, CInt) = (-1, -1)
  var path = [CChar](repeating: 0, count: 128)
  _ = openpty(&controller, &follower, &path, nil, nil)
  for end in [controller, follower] { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
  return (controller, follower, path.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" })
}

/// A new directory for a test.
func temporaryDirectory() -> String {
  var template = Array("/tmp/vehicled-tests-XXXXXX".utf8CString)
  return template.withUnsafeMutableBufferPointer { $0.baseAddress.flatMap { mkdtemp($0) }.map { String(cString: $0) } ?? "" }
}
