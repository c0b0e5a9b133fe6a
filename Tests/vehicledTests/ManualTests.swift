// The manual pages of the daemon, its configuration and its interface must document every key, method and option, with ranges and
// defaults. roff escapes are ignored.

import ArgumentParser
import Foundation
import Protocols
import Testing
import Varlink

@testable import vehicled

@Suite struct ManualTests {
  /// The lines of a page, with quotation marks, and without backslashes.
  private func page(_ name: String) throws -> [String] {
    let text = try String(contentsOfFile: tree("systemd/man/\(name)"), encoding: .utf8)
    return text.replacingOccurrences(of: "\\(dq", with: "\"").replacingOccurrences(of: "\\", with: "").split(separator: "\n")
      .map(String.init)
  }

  /// The lines below a heading, up to the next one.
  private func chapter(_ heading: String, of page: [String]) throws -> [String] {
    let start = try #require(page.firstIndex(of: heading), "there is no \(heading)")
    return Array(page[(start + 1)...].prefix { !$0.hasPrefix(".Sh ") && !$0.hasPrefix(".Ss ") })
  }

  /// The description of a key in one line, or nil if there is none.
  private func entry(_ key: String, in chapter: [String]) -> String? {
    guard let start = chapter.firstIndex(of: ".It Cm \(key)") else { return nil }
    return chapter[(start + 1)...].prefix { !$0.hasPrefix(".It ") && !$0.hasPrefix(".El") }.joined(separator: " ")
  }

  /// The words of a text, without macros and final punctuation.
  private func words(_ text: String) -> [String] {
    text.split { " ,;()[]\"".contains($0) }.filter { !$0.hasPrefix(".") }.map { word in
      String(word.last == "." || word.last == ":" ? word.dropLast() : word)
    }
  }

  /// A value in TOML notation.
  private func written(_ value: Value) -> [String] {
    switch value {
    case .bool(let flag): [flag ? "true" : "false"]
    case .list(let texts): texts
    case .int, .float, .string: [value.text]
    }
  }

  /// Each key is in the chapter, with its unit, its range or choices, and its default.
  private func expect(_ chapter: [String], documents options: [Protocols.Option]) throws {
    for option in options {
      let text = try #require(entry(option.name, in: chapter), "no description of \(option.name)")
      let found = words(text)
      let ends = option.rule.range.map { [Value.text($0.lowerBound), Value.text($0.upperBound)] } ?? []
      let unit = option.rule.unit.map { [$0 == "°" ? "degrees" : $0] } ?? []
      for word in ends + unit + option.rule.choices { #expect(found.contains(word), "\(option.name): \(word)") }
      let parts = text.components(separatedBy: "Default:")
      let last = words(parts.last ?? "")
      if let fallback = option.defaultValue {
        #expect(parts.count == 2 && last == written(fallback), "\(option.name)")
      } else if let stated = option.help.components(separatedBy: "default: ").dropFirst().first {
        // The machine determines the default; the page and the help agree about it.
        #expect(parts.count == 2 && last.first == words(stated).first, "\(option.name)")
      } else {
        #expect(parts.count <= 2, "\(option.name)")
      }
    }
  }

  @Test func `the configuration page documents the daemon's own keys`() throws {
    let page = try page("vehicled.toml.5")
    try expect(chapter(".Ss General keys", of: page), documents: Configuration.generalKeys)
    try expect(chapter(".Ss Section [control]", of: page), documents: Configuration.controlKeys)
    try expect(chapter(".Ss Section [device.NAME]", of: page), documents: Configuration.deviceKeys + Configuration.deviceAccessKeys)
  }

  @Test(arguments: registry.map(\.name))
  func `the configuration page documents the keys of each kind`(_ name: String) throws {
    let page = try page("vehicled.toml.5")
    let kind = try #require(registry.first { $0.name == name })
    let chapter = try chapter(".Ss Kind \(name)", of: page)
    try expect(chapter, documents: kind.options)
    for secret in kind.secrets { #expect(entry(secret.name, in: chapter) != nil, "\(secret.name)") }
    let device = try self.chapter(".Ss Section [device.NAME]", of: page)
    for role in kind.links {
      #expect(entry(role.key, in: device) != nil, "\(role.key)")
      for scheme in role.schemes + ["replay"] { #expect(chapter.contains { $0.hasPrefix(".Ql \(scheme) ") }, "\(scheme)") }
    }
    for section in kind.sections {
      let heading = "Section [device.NAME.\(section.name).NAME]"
      #expect(chapter.contains { $0.hasPrefix(".Sx \(heading)") }, "\(heading)")
      try expect(self.chapter(".Ss \(heading)", of: page), documents: section.options)
    }
  }

  @Test func `the configuration page documents every link scheme`() throws {
    let links = try chapter(".Sh LINKS", of: page("vehicled.toml.5"))
    for scheme in LinkURL.schemes {
      #expect(links.contains { $0.hasPrefix(".It Cm \(scheme.name):") }, "\(scheme.name)")
      for key in scheme.keys { #expect(links.contains { $0.contains("\(key)=") }, "\(key)") }
    }
  }

  @Test func `the interface page has every member as it is declared`() throws {
    let page = try page("io.vehicled.7")
    let text = page.flatMap { $0.split(separator: " ") }.joined(separator: " ")
    for interface in Interface.all {
      #expect(!interface.methods.isEmpty && !interface.errors.isEmpty)
      for member in interface.methods + interface.errors { #expect(page.contains(".It Ic \(member.name)"), "\(member.name)") }
      let lines = interface.text.split(separator: "\n").map(String.init)
      for line in lines where ["method ", "type ", "error "].contains(where: { line.hasPrefix($0) }) {
        #expect(text.contains(line), "\(line)")
      }
    }
  }

  @Test func `the interface page documents exactly the codes of DeviceError`() throws {
    let page = try page("io.vehicled.7")
    let start = try #require(page.firstIndex(of: ".It Ic DeviceError")),
      end = try #require(page.firstIndex(of: ".It Ic ConfigurationInvalid"))
    let found = page[start..<end].filter { $0.hasPrefix(".It Ql ") }.map { String($0.dropFirst(7)) }
    #expect(found.count == Set(found).count && Set(found) == Set(ErrorCode.allCases.map(\.rawValue)))
  }

  @Test func `the daemon's page documents exactly its options`() throws {
    let help = VehicledCommand.helpMessage(includeHidden: false, columns: 100).split(separator: "\n")
    let options = help.filter { $0.hasPrefix("  -") }.compactMap { $0.split(separator: " ").first { $0.hasPrefix("--") }?.dropFirst(2) }
    let items = try chapter(".Sh OPTIONS", of: page("vehicled.8")).filter { $0.hasPrefix(".It ") }
    let named = items.compactMap { $0.components(separatedBy: "Fl Fl ").last?.split(separator: " ").first }
    #expect(options.count > 5 && Set(options) == Set(named), "\(options) \(named)")
  }
}
