// The schema of the device: first the properties of the vehicle, then those of the adapter and the polling. The vehicle's part changes with
// detection; a property that keeps its name keeps its value. Names are unique: the first wins.

extension OBDMachine {
  /// A polled request with the properties that its response holds.
  struct Page {
    var inquiry: Inquiry
    var rows: [(parameter: UInt8?, row: DataRow)]
    /// A custom signal: its name has precedence.
    var isOwn = false

    init(_ inquiry: Inquiry, _ rows: [DataRow], isOwn: Bool = false) {
      (self.inquiry, self.rows, self.isOwn) = (inquiry, rows.map { (nil, $0) }, isOwn)
    }

    /// PIDs of service 01 in one request.
    init(_ parameters: [StandardParameter], of target: Target, period: Nanoseconds) {
      let lengths = parameters.map { Inquiry.Parameter(number: $0.number, count: $0.bytes) }
      inquiry = Inquiry(target, [0x01] + parameters.map(\.number), parameters: lengths, period: period)
      rows = parameters.flatMap { parameter in parameter.rows.map { (parameter.number, $0) } }
    }
  }

  /// The position of an own property in the schema.
  func position(_ signal: Signal) -> Int {
    Signal.reported.contains(signal.rawValue) ? signal.rawValue : ownBase + signal.rawValue - Signal.pollRate.rawValue
  }

  /// The positions of the vehicle's properties that become absent when it does not respond.
  var livelyProperties: [Int] { (0..<ownBase).filter { schema.properties[$0].lifetime != .retained } }

  private static let signNames = ["rpm", "rpm-2", "speed", "charging", "ignition"]

  func publish(_ signal: Signal, _ value: Value, _ effects: inout Effects) { effects.publish(position(signal), value) }
  func withdraw(_ signal: Signal, _ reason: String, _ effects: inout Effects) { effects.withdraw(position(signal), reason) }

  /// Sets the vehicle's properties: those of the BMS data record, of the fast request and of the other requests.
  mutating func layOut(hasBatteryPage: Bool, fast: Page?, _ pages: [Page]) {
    var properties = hasBatteryPage ? Array(Signal.properties(period: pace.period)[Signal.reported]) : []
    var names = Set(properties.map(\.name) + Signal.ownNames)
    let claimed = Set(signals.map(\.name))
    func place(_ page: Page) -> [Inquiry.Row] {
      // Requests that share the device's rate are not sent more often.
      let period = page.inquiry.isFast ? max(page.inquiry.period, pace.period) : page.inquiry.period
      return page.rows.compactMap { parameter, row in
        let isWanted = page.isOwn || !claimed.contains(row.property.name) && wishes.asks(row.property.name)
        guard isWanted, names.insert(row.property.name).inserted else { return nil }
        var property = row.property
        if case .fresh = property.lifetime { property.lifetime = .fresh(max(3 &* period, 2 * .second)) }
        properties.append(property)
        return Inquiry.Row(position: properties.count - 1, parameter: parameter, row: row)
      }
    }
    primary = fast.map(place) ?? []
    timetable.inquiries = pages.compactMap { page in
      let names = page.rows.map(\.row.property.name)
      guard let period = page.isOwn ? page.inquiry.period : wishes.period(of: names, usual: page.inquiry.period) else { return nil }
      var page = page
      page.inquiry.period = period
      page.inquiry.rows = place(page)
      if !names.isEmpty { page.inquiry.priority = wishes.priority(of: names) }
      return page.inquiry
    }
    timetable.begin()
    ownBase = properties.count
    properties += Signal.properties(period: pace.period)[(Signal.reported.upperBound + 1)...]
    schema = Schema(properties: properties, actions: Self.actions)
    signsOfUse = ownBase == 0 ? [] : Self.signNames.compactMap { name in properties[..<ownBase].firstIndex { $0.name == name } }
    said = [Absence](repeating: .none, count: properties.count)
  }

  /// Publishes the schema. Nothing may have been published in this turn before: its positions would be wrong.
  mutating func declare(hasBatteryPage: Bool, fast: Page?, _ pages: [Page], _ effects: inout Effects) {
    assert(effects.readings.isEmpty)
    let before = schema
    layOut(hasBatteryPage: hasBatteryPage, fast: fast, pages)
    if schema != before { effects.append(.declare(schema)) }
  }
}
