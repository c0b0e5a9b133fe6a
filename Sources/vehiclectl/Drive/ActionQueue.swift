// The actions of a drive by pipe: run in order on a connection of their own, so that set-points do not wait for their replies.

import Glibc
import Protocols

struct ActionQueue {
  struct Entry {
    /// The line of the input.
    let number: Int
    let request: DriveRequest
    /// The lease of a motion action.
    let lease: String?
  }

  private let client: Client
  private let device: String
  /// Seconds.
  private let timeout: Double
  private var waiting: [Entry] = []
  private var inFlight: (entry: Entry, limit: Double)?

  init(_ client: Client, device: String, timeout: Double) {
    self.client = client
    self.device = device
    self.timeout = timeout
  }

  /// The connection, while a reply is expected.
  var descriptor: Int32? { inFlight == nil ? nil : client.descriptor }

  mutating func add(_ entry: Entry) throws(Failure) {
    waiting.append(entry)
    try sendNext()
  }

  /// Drops the motion actions that are not sent yet.
  mutating func dropMotion() { waiting.removeAll { $0.lease != nil } }

  /// The next reply or error with its line; nil if there is none yet. An error other than a reply ends the queue.
  mutating func receive() throws(Failure) -> (entry: Entry, reply: Result<Contract.Call.Result, Failure>)? {
    guard let (entry, limit) = inFlight else { return nil }
    let reply: Result<Contract.Call.Result, Failure>
    do throws(Failure) {
      guard let result = try client.next(Contract.Call.self) else {
        guard Clock.monotonic >= limit else { return nil }
        throw .timeout(seconds: timeout)
      }
      reply = .success(result)
    } catch {
      reply = .failure(error)
      if case .rejected = error {} else { waiting = [] }
    }
    inFlight = nil
    try sendNext()
    return (entry, reply)
  }

  /// Waits for the next reply, at most for the timeout; nil if nothing is in flight.
  mutating func receiveLast() throws(Failure) -> (entry: Entry, reply: Result<Contract.Call.Result, Failure>)? {
    while let inFlight {
      if let answer = try receive() { return answer }
      DriveConnections.wait(for: [client.descriptor], until: inFlight.limit)
    }
    return nil
  }

  private mutating func sendNext() throws(Failure) {
    guard inFlight == nil, !waiting.isEmpty else { return }
    let next = waiting.removeFirst()
    guard case .run(let action, let arguments, _) = next.request else { return }
    inFlight = (next, Clock.monotonic + timeout)
    try client.begin(
      Contract.Call.self, .init(device: device, action: action, arguments: arguments.isEmpty ? nil : arguments, lease: next.lease))
  }
}
