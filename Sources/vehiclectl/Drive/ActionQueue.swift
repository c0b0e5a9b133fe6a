// Queues the actions from stdin (see PipeDrive). Actions run in order on a connection of their own, so that setpoints do not wait for their
// replies. Stop uses another connection, does not wait for actions in flight, and replaces the actions that are not sent yet. If a motion
// action was in flight, Stop is sent again after the reply to that action, because the daemon may have received the action after the Stop.

import Glibc
import Protocols
import Varlink

struct ActionQueue {
  struct Entry {
    /// The number of the input line.
    let number: Int
    let request: DriveRequest
    /// The lease, if this is a motion action.
    let lease: String?
    /// Whether this is a Stop that is sent again, after the reply to the action that it overtook. Only its error is shown.
    var isRepeated = false

    var isStop: Bool { if case .run("stop", _, _) = request { true } else { false } }
  }

  /// A reply or error, and the waiting actions that were dropped because of the error.
  typealias Answer = (entry: Entry, reply: Result<Contract.Call.Result, Failure>, dropped: [Entry])

  /// A connection with at most one call in flight.
  private struct Channel {
    let client: Client
    private(set) var inFlight: (entry: Entry, deadline: Double)?

    init(_ client: Client) { self.client = client }

    mutating func send(_ entry: Entry, to device: String, timeout: Double) throws(Failure) {
      guard case .run(let action, let arguments, _) = entry.request else { return }
      inFlight = (entry, Clock.monotonic + timeout)
      try client.begin(
        Contract.Call.self, .init(device: device, action: action, arguments: arguments.isEmpty ? nil : arguments, lease: entry.lease))
    }

    /// Returns the reply or the error, such as a timeout; nil if there is neither yet.
    mutating func receive(timeout: Double) -> (entry: Entry, reply: Result<Contract.Call.Result, Failure>)? {
      guard let (entry, deadline) = inFlight else { return nil }
      let reply: Result<Contract.Call.Result, Failure>
      do throws(Failure) {
        guard let result = try client.next(Contract.Call.self) else {
          guard Clock.monotonic >= deadline else { return nil }
          throw .timeout(seconds: timeout)
        }
        reply = .success(result)
      } catch { reply = .failure(error) }
      inFlight = nil
      return (entry, reply)
    }
  }

  private var actions: Channel
  private var stops: Channel
  private let device: String
  /// The timeout of each action in s.
  private let timeout: Double
  private var waiting: [Entry] = []
  private var waitingStop: Entry?
  /// The Stop that overtook the motion action in flight.
  private var overtaking: Entry?

  init(_ actions: Client, _ stops: Client, device: String, timeout: Double) {
    self.actions = Channel(actions)
    self.stops = Channel(stops)
    self.device = device
    self.timeout = timeout
  }

  /// The connections on which a reply is expected.
  var descriptors: [Int32] { [actions, stops].filter { $0.inFlight != nil }.map(\.client.descriptor) }

  /// Queues an action. For a Stop, returns the waiting actions that it replaces.
  mutating func add(_ entry: Entry) throws(Failure) -> [Entry] {
    var replaced: [Entry] = []
    if entry.isStop {
      swap(&replaced, &waiting)
      waitingStop = entry
      if actions.inFlight?.entry.lease != nil {
        overtaking = entry
        overtaking?.isRepeated = true
      }
    } else {
      waiting.append(entry)
    }
    try sendNext()
    return replaced
  }

  /// Drops the motion actions that are not sent yet, and returns them.
  mutating func dropMotion() -> [Entry] {
    defer { waiting.removeAll { $0.lease != nil } }
    return waiting.filter { $0.lease != nil }
  }

  /// Returns the next reply or error; nil if there is none yet. An error that is not a reply of the daemon drops the waiting actions.
  mutating func receive() throws(Failure) -> Answer? {
    var answer = stops.receive(timeout: timeout)
    if answer == nil {
      answer = actions.receive(timeout: timeout)
      if answer != nil, let stop = overtaking { (waitingStop, overtaking) = (waitingStop ?? stop, nil) }
    }
    guard let answer else { return nil }
    var dropped: [Entry] = []
    switch answer.reply {
    case .success, .failure(.rejected): break
    case .failure: swap(&dropped, &waiting)
    }
    try sendNext()
    return (answer.entry, answer.reply, dropped)
  }

  /// Waits for the next reply, at most for the timeout; nil if nothing is in flight.
  mutating func waitForReply() throws(Failure) -> Answer? {
    while let deadline = [actions, stops].compactMap(\.inFlight?.deadline).min() {
      if let answer = try receive() { return answer }
      Client.wait(for: descriptors, until: deadline)
    }
    return nil
  }

  private mutating func sendNext() throws(Failure) {
    if stops.inFlight == nil, let stop = waitingStop {
      waitingStop = nil
      try stops.send(stop, to: device, timeout: timeout)
    }
    // Actions that follow a Stop wait for its reply.
    guard stops.inFlight == nil, actions.inFlight == nil, !waiting.isEmpty else { return }
    try actions.send(waiting.removeFirst(), to: device, timeout: timeout)
  }
}
