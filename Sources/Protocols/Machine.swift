// The interface of every protocol state machine, or machine for short. A machine is a value: it receives inputs with their times, and
// returns effects. It never waits, reads a clock, generates a random number, opens anything or logs anything. Therefore a ten-minute ride
// replays in milliseconds, and every recording is a regression test.
//
//   device ── Input, at: ──▶ machine ── Effects ──▶ device          the device calls again at `nextWake`

/// One end of a protocol: a kind of device, or (in Peers) the simulated other end of its link.
public protocol Machine: Sendable {
  /// The initial declaration. A later `Effects.declare` replaces it.
  var schema: Schema { get }
  /// The time of the next `.wake`, or nil if none is due. Read after every input.
  var nextWake: Instant? { get }
  /// Handles one input. Called in the order of events; `now` never goes back.
  mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects)
}

extension Machine {
  /// Handles one input and returns `nextWake`. On an `any Machine`, this call works in place, whereas reading the property `nextWake` would
  /// copy the whole machine.
  public mutating func handleAndReturnNextWake(_ input: Input, at now: Instant, _ effects: inout Effects) -> Instant? {
    handle(input, at: now, &effects)
    return nextWake
  }
}

/// The name of a device's link. Most devices have one, `main`.
public struct LinkName: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
  public var description: String

  /// A link name: lower case, dashes.
  public init(stringLiteral name: String) { description = name }
  /// The link that `link = …` in the configuration configures.
  public static let main: LinkName = "main"
}

/// The state of a link.
public enum LinkState: Sendable, Equatable {
  /// Bytes can be sent. `maximumSend` is the size limit of one write in bytes, if the link has one. `baud` is the current speed of a
  /// serial line whose speed can change (`setBaud`), that is, of a hardware port whose URL does not set the speed.
  case up(maximumSend: Int?, baud: Int? = nil)
  /// Nothing can be sent, for this reason (a message).
  case down(String)
  /// A listening link rejected a peer from another network (the peer's address, and why). It continues to listen.
  case refused(String)
}

/// Correlates a `send` with its `sent`. Chosen by the machine; the failure of a send without an ID is reported by the link only.
public typealias SendID = UInt32
/// Correlates a command with its `complete`. Chosen by the device.
public typealias CommandID = UInt32
/// Correlates a `request` with its `response`. Chosen by the machine.
public typealias RequestID = UInt32

/// A command from a client, already checked against the schema.
public enum Command: Sendable, Equatable {
  /// Sets the property at this position of the schema.
  case set(property: Int, Value)
  /// Runs the action at this position of the schema.
  case run(action: Int, arguments: [String: Value])
}

/// The reason why a command failed. The strings are messages: the cause, then the remedy.
public enum CommandError: Error, Sendable, Equatable {
  /// The device is not reachable.
  case notConnected(String)
  /// No reply within this many milliseconds.
  case timeout(milliseconds: Int)
  /// The value or argument is invalid in a way that the schema cannot express.
  case invalid(argument: String, String)
  /// The device, or a safety rule, rejected the command. The code is `DeviceError.code` on the wire.
  case refused(code: ErrorCode, String)
}

/// The progress or the result of an action.
public struct Report: Sendable, Equatable {
  public var text: String?
  /// 0 to 1.
  public var progress: Double?
  public var columns: [String]
  public var rows: [[String]]
  public var data: [UInt8]?

  /// Creates a report; fields that are not given are absent.
  public init(text: String? = nil, progress: Double? = nil, columns: [String] = [], rows: [[String]] = [], data: [UInt8]? = nil) {
    self.text = text
    self.progress = progress
    self.columns = columns
    self.rows = rows
    self.data = data
  }
}

/// Correlates a `query` with its `rows`. Chosen by the machine.
public typealias QueryID = UInt32

/// An HTTP request that the device makes for the machine. Redirects are returned as responses; they are not followed.
public struct HTTPRequest: Sendable, Equatable {
  public var method: String
  public var url: String
  public var headers: [String: String]
  public var body: [UInt8]
  public var timeout: Nanoseconds
  /// The proxy's URL, or nil to use the environment (`https_proxy`, `no_proxy`).
  public var proxy: String?
  /// The maximum length of the response body in bytes, at most 16 MiB. A machine that accepts more than 1 MiB must parse it in
  /// several turns of the event loop.
  public let maxLength: Int

  /// Creates a request.
  public init(
    _ method: String, _ url: String, headers: [String: String] = [:], body: [UInt8] = [], timeout: Nanoseconds = 10 * .second,
    proxy: String? = nil, maxLength: Int = 1 << 20
  ) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
    self.timeout = timeout
    self.proxy = proxy
    self.maxLength = min(maxLength, 16 << 20)
  }
}

/// The response to an HTTP request: status and body with its media type (`application/json`, lower case, without parameters), or
/// the reason for the failure as a message.
public enum HTTPResponse: Sendable, Equatable {
  case answered(status: Int, type: String?, body: [UInt8])
  case failed(String)
}

/// A query of an SQLite database in `import/` of the state directory. The file is opened read-only. At most 10,000 rows are
/// returned, within 30 s.
public struct DatabaseQuery: Sendable, Equatable {
  /// The file's name, without a directory.
  public var file: String
  /// One SELECT statement; `?` stands for the arguments, in order.
  public var sql: String
  public var arguments: [Value]
  /// The stamp of an earlier answer, or nil to read the file in any case. If the file still has this stamp, the answer is `unchanged`.
  public var knownStamp: FileStamp?

  /// Creates a query.
  public init(_ file: String, _ sql: String, _ arguments: [Value] = [], knownStamp: FileStamp? = nil) {
    (self.file, self.sql, self.arguments, self.knownStamp) = (file, sql, arguments, knownStamp)
  }
}

/// Identifies the version of a file; equal as long as the file is unchanged.
public struct FileStamp: Sendable, Equatable {
  public var size: Int64
  /// The modification time, in nanoseconds since the Unix epoch.
  public var modified: Int64

  /// Creates a stamp.
  public init(size: Int64, modified: Int64) { (self.size, self.modified) = (size, modified) }
}

/// The result of a database query. NULL is nil; a blob is its bytes as UTF-8.
public enum DatabaseAnswer: Sendable, Equatable {
  case rows([[Value?]], FileStamp)
  /// The file still has the stamp of the query.
  case unchanged
  /// The file does not exist.
  case missing
  /// The file cannot be read; the cause as a message: locked, not a database, damaged, no such table.
  case failed(String)
}

/// The text of the event `state-corrupt`; `names` are the stored values that cannot be read.
func damagedSettingsMessage(_ names: [String]) -> String {
  "stored settings are corrupt and were discarded: \(names.joined(separator: ", ")); set them again"
}

/// An input of a machine.
public enum Input: Sendable {
  /// The first input: the values of `store` from earlier runs.
  case started(restored: [String: [UInt8]], wall: WallTime)
  case linkChanged(LinkName, LinkState)
  /// Received bytes. A stream link can split and join them anywhere; a packet link preserves their boundaries.
  case received(LinkName, [UInt8])
  /// The link has accepted a send, or the send has failed for this reason.
  case sent(SendID, failure: String?)
  /// A command; the machine must reply with exactly one `complete`.
  case perform(CommandID, Command)
  /// The caller has disconnected: an action that lasts as long as its caller ends now. `complete` may be omitted.
  case cancelled(CommandID)
  /// A reading of another device's property that `observe` requested. It arrives once at first, then after every change, and when the
  /// property becomes stale or its device is removed.
  case observed(reference: String, Reading.Content)
  case response(RequestID, HTTPResponse)
  case rows(QueryID, DatabaseAnswer)
  /// The reply to `requestTime`, in the next turn of the event loop.
  case time(WallTime)
  /// The value of a `store` was stored and now survives the death of the process, or it could not be stored for this reason.
  case stored(key: String, failure: String?)
  /// A client acquires the motion lease: motion commands are now accepted, and a setpoint must arrive within every `deadline`
  /// nanoseconds (`DeadmanTimer`). Sent only while the lease is free.
  case leaseBegan(deadline: Nanoseconds)
  /// The holder disconnected or released the lease; the string is the reason. Stop the vehicle now.
  case leaseEnded(String)
  /// `nextWake` is reached.
  case wake
  /// The daemon stops, or a client disconnects the device: send the shutdown sequence, then `stopped`. The device waits at most 1.5 s for
  /// `stopped`, then closes the links. A later `linkChanged` to up begins a new session.
  case stopping
}

/// An output of a machine.
public enum Effect: Sendable, Equatable {
  /// Exactly one write(2) or one GATT write, never merged with another; at most one is outstanding per link.
  /// Logs and recordings show only the length of a secret send.
  case send(LinkName, [UInt8], SendID?, secret: Bool)
  /// A send that must not be late: if more than `maxUnacknowledged` bytes of earlier sends are not acknowledged by the peer (TCP
  /// reports this), nothing is written and `sent` carries the failure.
  case sendUnlessBacklogged(LinkName, [UInt8], SendID, maxUnacknowledged: Int)
  /// The last-will frames that another process sends over this link if this process dies or freezes. They are valid until the link goes
  /// down or another last will replaces them. nil removes the last will.
  case lastWill(LinkName, LastWill?)
  /// An occurrence that is not a property.
  case event(name: String, text: String)
  /// The progress of an action that streams.
  case progress(CommandID, Report)
  case complete(CommandID, Result<Report, CommandError>)
  /// The state of the device, a word that the kind defines: `polling`, `asleep`.
  case status(String)
  /// A problem of the device as a message, or nil if there is none; logged once per change.
  case fault(String?)
  /// An anomaly without consequences; counted, and logged for debugging.
  case note(String)
  /// Close the link and reconnect after the usual back-off.
  case resetLink(LinkName, reason: String)
  /// Open an additional link to this URL; replaces a link of the same name.
  case openLink(LinkName, url: String)
  case closeLink(LinkName)
  /// Change the speed of a serial line whose `up` reported one. Received bytes that are not delivered yet are discarded.
  case setBaud(LinkName, Int)
  /// Listen on HOST:PORT, a local address, and accept one peer at a time from this network as this link. After a reset, the next peer is
  /// accepted; `closeLink` stops listening.
  case listen(LinkName, at: String, from: IPv4Network?)
  /// Receive only frames that match one of the filters, while the link is up. Links that are not a CAN interface of the kernel pass on all.
  case filter(LinkName, [CANFilter])
  case request(RequestID, HTTPRequest)
  case query(QueryID, DatabaseQuery)
  /// Request the wall-clock time. The clock can be set and the UTC offset can change, so do not cache the reply.
  case requestTime
  /// Subscribe to `device.property` of another device.
  case observe(reference: String)
  /// Store these bytes in `devices/NAME/KEY` in the state directory; an empty array removes the file. Replied to with `stored`.
  case store(key: String, [UInt8])
  /// The machine ends the motion lease, because no setpoint arrived in time or the link is down; the string is a message with the reason.
  /// The vehicle is being stopped; `leaseEnded` does not follow.
  case leaseLost(String)
  /// Replace the schema. Properties that keep their name keep their reading; readings in the same `Effects` refer to the new schema.
  case declare(Schema)
  /// The reply to `stopping`.
  case stopped
}

/// The outputs of a machine, in order. The device owns one value and reuses its storage, so that a turn of the event loop
/// allocates nothing.
public struct Effects: Sendable {
  /// New readings; they are applied after a `declare` in `list`, and before everything else in it.
  public private(set) var readings: [Reading] = []
  /// All other effects, in order.
  public private(set) var list: [Effect] = []
  /// The status that was appended last.
  private var status: String?
  /// The fault that was appended last.
  private var fault: String?

  /// Creates an empty list of effects.
  public init() {}

  /// Whether there are no effects.
  public var isEmpty: Bool { readings.isEmpty && list.isEmpty }

  /// Removes all effects; keeps the storage, and the last status and fault.
  public mutating func removeAll() {
    readings.removeAll(keepingCapacity: true)
    list.removeAll(keepingCapacity: true)
  }

  /// Exchanges the storage with that of another value. Both must be empty.
  public mutating func exchangeStorage(with other: inout Effects) {
    swap(&readings, &other.readings)
    swap(&list, &other.list)
  }

  /// Publishes a value of the property at this position of the schema; `age` is the time since it was measured, in nanoseconds.
  public mutating func publish(_ property: Int, _ value: Value, age: Nanoseconds = 0) {
    readings.append(Reading(property, .value(value), age: age))
  }

  /// Withdraws the value of a property; the reason is shown instead.
  public mutating func withdraw(_ property: Int, _ reason: String) {
    readings.append(Reading(property, .absent(reason)))
  }

  /// Appends another effect. A status or fault that repeats the last one is dropped, even if the last one was
  /// returned for an earlier input.
  public mutating func append(_ effect: Effect) {
    switch effect {
    case .status(let word):
      if word == status { return }
      status = word
    case .fault(let message):
      if message == fault { return }
      fault = message
    default: break
    }
    list.append(effect)
  }

  /// Sends bytes over a link in one write.
  public mutating func send(_ link: LinkName = .main, _ bytes: [UInt8], _ id: SendID? = nil, secret: Bool = false) {
    list.append(.send(link, bytes, id, secret: secret))
  }
}

// Completion of commands. `id` is nil if the caller has disconnected.
extension Effects {
  mutating func fail(command id: CommandID?, _ error: CommandError) {
    if let id { append(.complete(id, .failure(error))) }
  }

  mutating func refuse(command id: CommandID?, code: ErrorCode, _ message: String) { fail(command: id, .refused(code: code, message)) }

  mutating func succeed(command id: CommandID?, _ report: Report = Report()) {
    if let id { append(.complete(id, .success(report))) }
  }
}
