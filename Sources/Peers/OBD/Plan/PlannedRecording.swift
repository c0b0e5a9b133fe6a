// Records a planned car in virtual time. The protocol state machine of kind `obd` (a `Machine`) polls the simulated adapter. The values
// that the state machine publishes are recorded as the daemon sends them to watching clients: when they change, and every second while they
// do not.

import Protocols

/// The machine, the adapter with its car, and the latest published values.
public struct PlannedRecording {
  /// A recorded property. If its type or unit changes, a new series begins.
  public struct Series: Sendable, Hashable {
    public var property: String
    public var type: ValueType
    public var unit: String?
  }

  /// A published value, or its absence.
  public struct Sample: Sendable {
    /// The index in `series`.
    public var series: Int
    public var content: Reading.Content
    /// The time of measurement, in ns since the start of the plan.
    public var time: Instant
    /// For the first sample after a power failure: when the power failed. Nothing is recorded in between.
    public var powerFailure: Instant?
  }

  /// The property with the state of the device.
  public static let state = Series(property: "state", type: .string)

  private struct Slot {
    /// The index of the series, once it has a value.
    var series: Int?
    var content: Reading.Content?
    var published: Instant = .min
  }

  private static let republishInterval: Nanoseconds = .second
  /// The mean delay that the computer adds to a reply, in ns.
  private static let meanDelay = 200_000.0

  private var machine: any Machine
  private var adapter: ELM327Adapter
  private var effects = Effects()
  private var adapterEffects = Effects()
  private var machineInputs: [Input] = []
  private var adapterInputs: [Input] = []
  private var machineWake: Instant?
  private var adapterWake: Instant?
  private var properties: [Property] = []
  private var slots: [Slot] = []
  private var random: SeededRandom
  private var published: [Sample] = []
  /// The machine as it is after a start of the daemon.
  private let newMachine: any Machine
  private var outages: ArraySlice<PlannedOutage>
  private var outage: PlannedOutage?
  /// When the power failed, until the first sample after that.
  private var powerFailure: Instant?
  /// The series so far; samples refer to them by index.
  public private(set) var series: [Series] = []
  private var indexes: [Series: Int] = [:]
  /// The time in virtual nanoseconds.
  public private(set) var now: Instant = 0
  /// The number of polled values, whether they changed or not.
  public private(set) var samples = 0
  /// The number of polls of the data record that is polled most often.
  public private(set) var polls = 0

  /// Creates a recording that polls `rate` times per second. `car`, `seed` and the outages, in chronological order, determine everything.
  public init(_ car: PlannedCar, rate: Double, seed: UInt64, outages: [PlannedOutage] = []) throws(OptionError) {
    self.outages = outages[...]
    newMachine = try Kind.obd.make(Setup(device: "ev", options: ["rate": .float(rate)]))
    machine = newMachine
    // All frames of a reply arrive together, at the time of the last frame on a real bus. Separate arrivals would only cost computing time.
    var timing = AdapterTiming.real
    (timing.latency, timing.frame) = (15 * .millisecond, 0)
    adapter = ELM327Adapter(car: car, timing: timing, seed: seed)
    random = SeededRandom(seed: seed ^ 0xDE1A)
    properties = machine.schema.properties
    slots = properties.map { _ in Slot() }
    machineInputs = [.started(restored: [:], wall: WallTime(microseconds: 0)), .linkChanged(.main, .up(maximumSend: nil))]
    adapterInputs = [.started(restored: [:], wall: WallTime(microseconds: 0)), .linkChanged(.main, .up(maximumSend: nil))]
  }

  /// The odometer in km since the start of the plan.
  public var distance: Double { (adapter.car as? PlannedCar)?.distance ?? 0 }

  /// Continues to this time. Returns the samples that were published since the last call, in chronological order.
  public mutating func run(until end: Instant) -> [Sample] {
    while true {
      handleInputs()
      let change = outage?.end ?? outages.first?.start ?? .max
      let next = min(machineWake ?? .max, adapterWake ?? .max, change)
      guard next <= end else { break }
      now = max(now, next)
      if change <= now {
        if outage == nil { beginOutage() } else { endOutage() }
      } else if adapterWake ?? .max <= now {
        adapterInputs.append(.wake)
      } else {
        machineInputs.append(.wake)
      }
    }
    now = end
    defer { published.removeAll(keepingCapacity: true) }
    return published
  }

  private mutating func beginOutage() {
    outage = outages.popFirst()
    switch outage?.cause {
    case .link(let reason)?: machineInputs.append(.linkChanged(.main, .down(reason)))
    default:
      (machineWake, machineInputs) = (nil, [])
      powerFailure = powerFailure ?? now
    }
    adapterInputs.append(.linkChanged(.main, .down("closed")))
  }

  private mutating func endOutage() {
    if case .power? = outage?.cause {
      machine = newMachine
      properties = machine.schema.properties
      slots = properties.map { _ in Slot() }
      machineInputs = [.started(restored: [:], wall: WallTime(microseconds: now / 1000))]
    }
    outage = nil
    machineInputs.append(.linkChanged(.main, .up(maximumSend: nil)))
    adapterInputs.append(.linkChanged(.main, .up(maximumSend: nil)))
  }

  private mutating func handleInputs() {
    while !adapterInputs.isEmpty || !machineInputs.isEmpty {
      if !adapterInputs.isEmpty {
        adapterEffects.removeAll()
        adapter.handle(adapterInputs.removeFirst(), at: now, &adapterEffects)
        adapterWake = adapter.nextWake.map { $0 + delay() }
        for effect in adapterEffects.list { perform(adapter: effect) }
      } else {
        effects.removeAll()
        machineWake = machine.handleAndReturnNextWake(machineInputs.removeFirst(), at: now, &effects)
        if !effects.isEmpty { perform() }
      }
    }
  }

  /// An exponentially distributed delay, at most 5 ms.
  private mutating func delay() -> Nanoseconds {
    // Each leading zero bit is one half-life; the low bits are a fraction of another.
    let bits = random.next()
    let halves = Double(bits.leadingZeroBitCount) + Double(bits & 0xFFFF) / 65_536
    return min(5 * .millisecond, Nanoseconds(halves * Self.meanDelay * 0.69))
  }

  private mutating func perform(adapter effect: Effect) {
    switch effect {
    case .send(_, let bytes, let id, _):
      if outage == nil { machineInputs.append(.received(.main, bytes)) }
      if let id { adapterInputs.append(.sent(id, failure: nil)) }
    case .resetLink(let link, let reason): reset(link, reason)
    default: break
    }
  }

  private mutating func reset(_ link: LinkName, _ reason: String) {
    for state in [LinkState.down(reason), .up(maximumSend: nil)] {
      machineInputs.append(.linkChanged(link, state))
      adapterInputs.append(.linkChanged(link, state))
    }
  }

  private mutating func perform() {
    for case .declare(let schema) in effects.list { declare(schema) }
    for reading in effects.readings {
      if case .value = reading.content {
        samples += 1
        // The motor speed, the first property, is in the data record that is polled most often.
        if reading.property == 0 { polls += 1 }
      }
      publish(reading)
    }
    for effect in effects.list {
      switch effect {
      case .send(_, let bytes, let id, _):
        if let id { machineInputs.append(.sent(id, failure: nil)) }
        adapterInputs.append(.received(.main, bytes))
      case .status(let name): add(index(of: Self.state), .value(.string(name)), now)
      case .resetLink(let link, let reason): reset(link, reason)
      case .store(let key, _): machineInputs.append(.stored(key: key, failure: nil))
      case .requestTime: machineInputs.append(.time(WallTime(microseconds: now / 1000)))
      default: break
      }
    }
  }

  private mutating func publish(_ reading: Reading) {
    let position = reading.property
    guard slots.indices.contains(position) else { return }
    let isSame = slots[position].content == reading.content
    if case .value(let value) = reading.content {
      if isSame, now / Self.republishInterval == slots[position].published / Self.republishInterval { return }
      if slots[position].series == nil {
        slots[position].series = index(of: Series(property: properties[position].name, type: value.type, unit: properties[position].unit))
      }
    } else if isSame {
      return
    }
    slots[position].content = reading.content
    slots[position].published = now
    if let series = slots[position].series { add(series, reading.content, now - max(0, reading.age)) }
  }

  /// Replaces the properties. A property with the name and type of a previous one takes over its value.
  private mutating func declare(_ schema: Schema) {
    var known: [String: (slot: Slot, type: ValueType)] = [:]
    for (property, slot) in zip(properties, slots) { known[property.name] = (slot, property.type) }
    properties = schema.properties
    slots = properties.map { property in
      guard let old = known.removeValue(forKey: property.name), old.type == property.type else { return Slot() }
      return old.slot
    }
    for old in known.values { if let series = old.slot.series { add(series, .absent("no longer declared"), now) } }
  }

  private mutating func add(_ series: Int, _ content: Reading.Content, _ time: Instant) {
    published.append(Sample(series: series, content: content, time: time, powerFailure: powerFailure))
    powerFailure = nil
  }

  private mutating func index(of key: Series) -> Int {
    if let index = indexes[key] { return index }
    indexes[key] = series.count
    series.append(key)
    return series.count - 1
  }
}
