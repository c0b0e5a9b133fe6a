// The contract of every protocol machine. A machine is a value: it is given inputs and instants and answers with
// effects. It never waits, reads a clock, draws a random number, opens anything or logs anything. So a ten-minute ride
// replays in milliseconds and every recording is a regression test.
//
//   device ── Input, at: ──▶ machine ── Effects ──▶ device          the device calls again at `nextWake`

/// One end of a protocol: a kind of device, or (in Peers) what stands at the other end of its link.
public protocol Machine: Sendable {
  /// What is declared at start. A later `Effects.declare` replaces it.
  var schema: Schema { get }
  /// When the machine wants a `.wake`, or nil when nothing is due. Read after every input.
  var nextWake: Instant? { get }
  /// Takes one input. Called for one input at a time, in the order things happened; `now` never goes back.
  mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects)
}

extension Machine {
  /// Takes one input and gives `nextWake`. Works where the machine lies, while reading a property of an `any Machine`
  /// copies the whole machine.
  public mutating func take(_ input: Input, at now: Instant, _ effects: inout Effects) -> Instant? {
    handle(input, at: now, &effects)
    return nextWake
  }
}

/// Names a link of a device. Most devices have one, `main`.
public struct LinkName: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
  public var description: String

  /// A link of this name: lower case, dashes.
  public init(stringLiteral name: String) { description = name }
  /// The link that `link = …` in the configuration names.
  public static let main: LinkName = "main"
}

/// What a machine is told of a link.
public enum LinkState: Sendable, Equatable {
  /// Bytes can be sent. `maximumSend` is the largest message one write carries, where the link has such a limit. `baud` is how fast a
  /// serial line runs that may run at another speed (`setBaud`): one of hardware, whose URL does not say it.
  case up(maximumSend: Int?, baud: Int? = nil)
  /// Nothing can be sent. The reason is in a person's words.
  case down(String)
  /// A link that listens refused a peer that is not of the network that is meant (its address, and why); it goes on listening.
  case refused(String)
}

/// Correlates a `send` with its `sent`. Drawn by the machine; a send without one is told of only by the link's end.
public typealias SendID = UInt32
/// Correlates a command with its `complete`. Drawn by the device.
public typealias CommandID = UInt32
/// Correlates a `request` with its `response`. Drawn by the machine.
public typealias RequestID = UInt32

/// A command from a person or a program, already checked against the schema.
public enum Command: Sendable, Equatable {
  /// Sets the property at this position of the schema.
  case set(property: Int, Value)
  /// Runs the action at this position of the schema.
  case run(action: Int, arguments: [String: Value])
}

/// Why a command failed. Words are for people: what is wrong, then how to mend it.
public enum CommandError: Error, Sendable, Equatable {
  /// The device is not reachable now.
  case notConnected(String)
  /// No answer within this many milliseconds.
  case timeout(milliseconds: Int)
  /// The caller's value or argument is wrong in a way that the schema cannot say.
  case invalid(argument: String, String)
  /// The device, or the rule that guards it, refused. The code is a short stable word.
  case refused(code: String, String)
}

/// What an action tells its caller, as it goes or at its end.
public struct Report: Sendable, Equatable {
  public var text: String?
  /// 0 to 1.
  public var progress: Double?
  public var columns: [String]
  public var rows: [[String]]
  public var data: [UInt8]?

  /// A report of what is given; the rest is absent.
  public init(text: String? = nil, progress: Double? = nil, columns: [String] = [], rows: [[String]] = [], data: [UInt8]? = nil) {
    self.text = text
    self.progress = progress
    self.columns = columns
    self.rows = rows
    self.data = data
  }
}

/// Correlates a `query` with its `rows`. Drawn by the machine.
public typealias QueryID = UInt32

/// A call to an HTTP server that the device makes for the machine. At most `maxLength` bytes come back. A redirection is an answer
/// like any other: nobody follows it.
public struct HTTPRequest: Sendable, Equatable {
  public var method: String
  public var url: String
  public var headers: [String: String]
  public var body: [UInt8]
  public var timeout: Nanoseconds
  /// The proxy's URL; nil: what the environment says (`https_proxy`, `no_proxy`).
  public var proxy: String?
  /// The longest body that is taken, 16 MiB at the most. Who asks for more than 1 MiB reads it in pieces, a turn each.
  public let maxLength: Int

  /// A request with this method and URL.
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

/// What came back: a status and a body with its media type (`application/json`, lower case, without parameters), or why nothing
/// did, in a person's words.
public enum HTTPResponse: Sendable, Equatable {
  case answered(status: Int, type: String?, body: [UInt8])
  case failed(String)
}

/// A question to an SQLite database that somebody put into the state directory's `import/`. It is read, never written. At most
/// 10,000 rows come back, and it may take 30 s.
public struct DatabaseQuery: Sendable, Equatable {
  /// The file's name, without a folder.
  public var file: String
  /// One SELECT; `?` stands for the arguments, in order.
  public var sql: String
  public var arguments: [Value]
  /// Where the file is still as it was for an earlier answer, nothing is read.
  public var unlessStill: FileStamp?

  /// A question to this file.
  public init(_ file: String, _ sql: String, _ arguments: [Value] = [], unlessStill: FileStamp? = nil) {
    (self.file, self.sql, self.arguments, self.unlessStill) = (file, sql, arguments, unlessStill)
  }
}

/// Which state of a file was read; equal while nobody has changed it.
public struct FileStamp: Sendable, Equatable {
  public var size: Int64
  /// Nanoseconds of the wall clock.
  public var modified: Int64

  /// A file of this size, changed at this time.
  public init(size: Int64, modified: Int64) { (self.size, self.modified) = (size, modified) }
}

/// What came of a question to a database. NULL is nil; a blob is what its bytes read as text.
public enum DatabaseAnswer: Sendable, Equatable {
  case rows([[Value?]], FileStamp)
  /// It is as it was.
  case unchanged
  /// There is no such file.
  case missing
  /// Why it could not be read, in a person's words: locked, no database, damaged, no such table.
  case failed(String)
}

/// What an event called `damaged` says of values that were kept and make no sense.
func keptWords(_ names: [String]) -> String {
  "what was kept of \(names.joined(separator: ", ")) makes no sense and counts as never set: set it again"
}

/// Everything that can happen to a machine.
public enum Input: Sendable {
  /// First of all inputs, once: what `store` kept in earlier runs.
  case started(restored: [String: [UInt8]], wall: WallTime)
  case linkChanged(LinkName, LinkState)
  /// Bytes came in; a stream link splits and joins them anywhere, a packet link keeps its boundaries.
  case received(LinkName, [UInt8])
  /// The link took a send, or failed to (the reason).
  case sent(SendID, failure: String?)
  /// A command; it must end in exactly one `complete`.
  case perform(CommandID, Command)
  /// The caller is gone: an action that lasts as long as its caller ends now. `complete` may be left out.
  case cancelled(CommandID)
  /// What is known of a property of another device that was asked for with `observe`: at first, after every change, and when it
  /// is stale or its device gone.
  case observed(reference: String, Reading.Content)
  case response(RequestID, HTTPResponse)
  case rows(QueryID, DatabaseAnswer)
  /// The answer to `tellTime`, in the next turn.
  case time(WallTime)
  /// A `store` is on its way to the disk and survives the death of the process, or failed (the reason).
  case stored(key: String, failure: String?)
  /// Somebody holds the motion lease from now on: what moves the vehicle is performed, and a set-point must come within the
  /// deadline, again and again (`DeadMan`). Told only while nobody holds it.
  case leaseBegan(deadline: Nanoseconds)
  /// The holder is gone or gives up (the reason): stop the vehicle now.
  case leaseEnded(String)
  /// `nextWake` has come.
  case wake
  /// The daemon stops, or a person disconnects the device: last words now, then `stopped`. The device waits 1.5 s for it and
  /// closes the links; after a `linkChanged` to up all begins anew.
  case stopping
}

/// One thing a machine wants done.
public enum Effect: Sendable, Equatable {
  /// Exactly one write(2) or one GATT write, never gathered with another; at most one outstanding per link.
  /// A secret send shows only its length in logs and recordings.
  case send(LinkName, [UInt8], SendID?, secret: Bool)
  /// A send that is worth nothing later: where the other side has not acknowledged more than so many bytes of what was sent
  /// before (TCP tells), nothing is written and `sent` carries the failure.
  case sendUnlessBehind(LinkName, [UInt8], SendID, most: Int)
  /// What another process says over this link should this one die or freeze; it stands until the link is down or another takes
  /// its place. nil: nothing.
  case will(LinkName, Will?)
  /// Something happened that is no property.
  case event(name: String, text: String)
  /// A step of an action that streams.
  case progress(CommandID, Report)
  case complete(CommandID, Result<Report, CommandError>)
  /// The kind's own word for what it is doing: `polling`, `asleep`. Shown as the device's state.
  case status(String)
  /// The device is in trouble (a person's words); it is logged once per change. nil: the trouble is over.
  case fault(String?)
  /// Something went wrong that is counted and kept for debugging, but changes nothing.
  case note(String)
  /// Close the link and bring it up again after the usual back-off.
  case resetLink(LinkName, reason: String)
  /// Open a further link to this URL, in place of one of that name.
  case openLink(LinkName, url: String)
  case closeLink(LinkName)
  /// Let a line that came up with a speed run at another from now on. What has come and was not heard yet is thrown away.
  case setBaud(LinkName, Int)
  /// Accept one peer at a time at HOST:PORT, an address of ours, as this link, if it comes from this network. Whoever is reset
  /// makes way for the next; `closeLink` ends it.
  case listen(LinkName, at: String, from: IPv4Network?)
  case request(RequestID, HTTPRequest)
  case query(QueryID, DatabaseQuery)
  /// What time is it? The wall's clock is set now and then, and the local offset changes: ask again.
  case tellTime
  /// Tell me of `device.property` of another device from now on.
  case observe(reference: String)
  /// Keep these bytes under `devices/NAME/KEY` in the state directory; empty removes them. Ends in `stored`.
  case store(key: String, [UInt8])
  /// The motion lease is at its end, because of the machine: no set-point came in time, the link is gone (a person's words).
  /// The vehicle is being stopped; `leaseEnded` does not follow.
  case leaseLost(String)
  /// The schema changes. Readings of properties that keep their name are kept; those of the same turn stand at their places in the
  /// new one.
  case declare(Schema)
  /// The answer to `stopping`.
  case stopped
}

/// What a machine wants done, in order. The device owns one and reuses its storage: nothing is allocated per tick.
public struct Effects: Sendable {
  /// New readings; they are applied before anything in `list`.
  public private(set) var readings: [Reading] = []
  /// The rest, in order.
  public private(set) var list: [Effect] = []

  /// Empty.
  public init() {}

  /// Whether there is nothing to do.
  public var isEmpty: Bool { readings.isEmpty && list.isEmpty }

  /// Forgets everything and keeps the storage.
  public mutating func removeAll() {
    readings.removeAll(keepingCapacity: true)
    list.removeAll(keepingCapacity: true)
  }

  /// Publishes a value of the property at this position of the schema, which was measured so long ago.
  public mutating func publish(_ property: Int, _ value: Value, age: Nanoseconds = 0) {
    readings.append(Reading(property, .value(value), age: age))
  }

  /// Says that the property has no value, and why.
  public mutating func withdraw(_ property: Int, _ reason: String) {
    readings.append(Reading(property, .absent(reason)))
  }

  /// Appends any other effect.
  public mutating func append(_ effect: Effect) {
    list.append(effect)
  }

  /// Sends bytes over a link in one write.
  public mutating func send(_ link: LinkName = .main, _ bytes: [UInt8], _ id: SendID? = nil, secret: Bool = false) {
    list.append(.send(link, bytes, id, secret: secret))
  }
}
