// Fuzzes the parsers of servers' responses, of gpsd's reports, of sensors' notifications, of stored values, of formulas and of imported signals. Error
// messages and other texts are bounded and free of control characters, values are valid for their property, and everything that is
// stored is restored unchanged. Built together with Sources/Protocols and Sources/SignalImport as one module, outside the package.

private func checkText(_ text: String, maxLength: Int) {
  require(text.unicodeScalars.count <= maxLength, "the text has \(text.unicodeScalars.count) scalars")
  require(text.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) }, "the text has a control character")
}

private func checkWeather(_ response: HTTPResponse) {
  do throws(WeatherError) {
    let report = try WeatherAnswer.weather(response)
    for property in WeatherProperty.inResponse {
      guard case .value(let value)? = report[property], let number = value.number else { continue }
      require(property.range?.contains(number) == true, "\(property) cannot be \(number)")
    }
    let stored = WeatherStore.answer(WeatherStore.bytes(of: report, at: WallTime(microseconds: 1), for: "here"), for: "here")
    require(stored?.report.temperature == report.temperature || report.temperature.isAbsent, "the stored temperature differs")
  } catch {
    checkText(error.message, maxLength: 400)
  }
  do throws(WeatherError) {
    let place = try WeatherAnswer.place(response)
    require((-90...90).contains(place.coordinates.latitude), "latitude out of range: \(place.coordinates.latitude)")
    require((-180...180).contains(place.coordinates.longitude), "longitude out of range: \(place.coordinates.longitude)")
    checkText(place.name, maxLength: 130)
  } catch {
    checkText(error.message, maxLength: 400)
  }
}

extension Reading.Content {
  fileprivate var isAbsent: Bool { if case .absent = self { true } else { false } }
}

private func checkToy(_ response: HTTPResponse) {
  for isNew in [true, false] {
    do throws(ToyError) {
      let user = try ToyAnswer.user(response, isNew: isNew)
      require(JSONNode(untrusted: user.bytes).flatMap(ToyUser.init) == user && user.id > 0, "the stored user differs")
      checkText((user.name ?? "") + (user.email ?? ""), maxLength: 200)
    } catch {
      checkText(error.message, maxLength: 400)
    }
  }
  if var history = try? ToyAnswer.history(response, of: 18) {
    require(Set(history.facts.map(\.id)).count == history.facts.count, "the history has duplicate facts")
    for fact in history.facts { checkText(fact.text, maxLength: 1000) }
    history.time = 5
    require(ToyHistory(stored: history.bytes) == history, "the stored history differs")
  }
  do throws(ToyError) {
    let vote = ToyPendingVote(server: "https://toy.example.org", user: 18, fact: 1, vote: .up)
    if case .counted(let fact) = try ToyAnswer.voteResult(response, vote) { checkText(fact.summary, maxLength: 1000) }
  } catch {
    checkText(error.message, maxLength: 400)
  }
}

private func checkSensor<Measurement: SensorMeasurement>(_ kind: Measurement.Type, _ bytes: [UInt8]) {
  var machine = SensorMachine<Measurement>()
  var effects = Effects()
  machine.handleAndCheck(.linkChanged(.main, .up(maximumSend: nil)), at: 1, maxStringLength: 400, &effects)
  machine.handleAndCheck(.received(.main, bytes), at: 1, maxStringLength: 400, &effects)
}

private func checkPosition(_ bytes: [UInt8]) {
  var machine = PositionMachine()
  var effects = Effects()
  machine.handleAndCheck(.linkChanged(.main, .up(maximumSend: nil)), at: 1, maxStringLength: 400, &effects)
  machine.handleAndCheck(.received(.main, Array("{\"class\":\"VERSION\"}\n".utf8)), at: 1, maxStringLength: 400, &effects)
  machine.handleAndCheck(.received(.main, bytes + [lineFeed]), at: 2, maxStringLength: 400, &effects)
}

private func checkStored(_ bytes: [UInt8]) {
  var health = HealthStore()
  _ = health.restore(bytes, DayClock(WallTime(microseconds: 1_773_147_900_000_000), at: 5), at: 5)
  _ = WeatherStore.place(bytes, for: "Oslo")
  _ = WeatherStore.answer(bytes, for: "here")
  let options: [String: Value] = ["server": .string("https://x"), "listen": .string("0.0.0.0:1"), "toy-network": .string("1.2.3.4")]
  guard var machine = try? Kind.toy.make(Setup(options: options)) else { return require(false, "the options of the toy are rejected") }
  var effects = Effects()
  let values = ["session": bytes, "history": bytes, "votes": bytes]
  machine.handleAndCheck(.started(restored: values, wall: WallTime(microseconds: 0)), at: 1, maxStringLength: 4000, &effects)
}

/// The bytes are a formula, a line feed, and the response that the formula reads.
private func checkFormula(_ bytes: [UInt8]) {
  let end = bytes.firstIndex(of: lineFeed) ?? bytes.count
  let text = String(decoding: bytes[..<end], as: UTF8.self)
  do throws(ExpressionError) {
    let expression = try Expression(text)
    let outcome = bytes[end...].withUnsafeBufferPointer { expression.evaluate($0) }
    if case .number(let number) = outcome { require(number.isFinite, "\(text) is \(number)") }
  } catch {
    require((0...text.utf8.count).contains(error.offset), "the offset of the error is outside \(text)")
    checkText(error.message, maxLength: 400)
  }
}

private func checkDBC(_ bytes: [UInt8]) {
  guard let imported = try? ImportedCANSignals(bytes) else { return }
  for line in imported.file(from: "x").split(separator: "\n") { checkText(String(line), maxLength: 20_000) }
  for remark in imported.skipped + imported.notes { checkText(remark.place + remark.message, maxLength: 3000) }
  require(Set(imported.signals.map(\.name)).count == imported.count, "duplicate names of signals")
  for signal in imported.signals {
    let problems = CANSignalRules.problems(of: signal.section)
    require(problems.isEmpty, "\(signal.name) is rejected: \(problems)")
  }
}

private func checkImport(_ bytes: [UInt8]) {
  checkDBC(bytes)
  guard let imported = try? ImportedSignals(bytes) else { return }
  for line in imported.file(from: "x").split(separator: "\n") { checkText(String(line), maxLength: 2500) }
  for remark in imported.skipped + imported.notes { checkText(remark.place + remark.message, maxLength: 3000) }
  require(Set(imported.signals.map(\.name)).count == imported.count, "duplicate names of signals")
  for signal in imported.signals {
    var problems: [OptionError] = []
    guard let custom = CustomSignal(signal.section, of: Setup(), &problems) else {
      return require(false, "\(signal.name) is rejected: \(problems)")
    }
    require(OBDQuery.readServices.contains(custom.request.service), "\(signal.name) does not read only")
    if case .value(let value) = bytes.withUnsafeBufferPointer({ custom.row.read($0) }) { custom.row.property.check(value) }
  }
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let input = Array(UnsafeBufferPointer(start: start, count: count))
  guard let first = input.first else { return 0 }
  let body = Array(input.dropFirst())
  let status = [200, 200, 200, 201, 204, 400, 404, 500][Int(first & 7)]
  let response = HTTPResponse.answered(status: status, type: first & 8 == 0 ? "application/json" : nil, body: body)
  switch first >> 4 {
  case 0...2: checkWeather(response)
  case 3: checkFormula(body)
  case 4: checkImport(body)
  case 5...8: checkToy(response)
  case 9: checkPosition(body)
  case 10, 11: checkSensor(HeartRateMeasurement.self, body)
  case 12, 13: checkSensor(RunningMeasurement.self, body)
  default: checkStored(body)
  }
  return 0
}
