# Installs Portico's formula as Homebrew would, and runs its test: formula.rb FORMULA ARCHIVES PREFIX
#
# Takes archives from the folder ARCHIVES instead of their URL and verifies their checksums. Supports only the parts of Homebrew that the formula
# uses; any other call is an error.
require "digest"
require "fileutils"
require "open3"
require "pathname"
require "tmpdir"

PREFIX = Pathname(ARGV.fetch(2)).expand_path
ARCHIVES = Pathname(ARGV.fetch(1)).expand_path

# Homebrew's extension of Pathname: `install "file"` and `install "file" => "name"` copy into the folder.
class Pathname
  def install(*sources)
    sources.flatten.each do |source|
      (source.is_a?(Hash) ? source : {source => File.basename(source)}).each do |from, name|
        mkpath
        FileUtils.cp(from, self/name)
      end
    end
  end
end

class Formula
  class << self
    attr_reader :installed_test, :installed_service

    %i[desc homepage version license url sha256].each do |field|
      define_method(field) do |value = nil|
        @fields ||= {}
        value ? @fields[field] = value : @fields.fetch(field)
      end
    end

    def on_linux = yield
    def on_intel = RUBY_PLATFORM.start_with?("x86_64") && yield
    def on_arm = RUBY_PLATFORM.start_with?("aarch64") && yield
    def test(&block) = @installed_test = block
    def service(&block) = @installed_service = block
    def inherited(formula) = (super; FORMULAE << formula)
  end

  FORMULAE = []

  def prefix = PREFIX
  def bin = prefix/"bin"
  def man1 = prefix/"share/man/man1"
  def bash_completion = prefix/"etc/bash_completion.d"
  def zsh_completion = prefix/"share/zsh/site-functions"
  def fish_completion = prefix/"share/fish/vendor_completions.d"
  def opt_bin = bin
  def var = prefix/"var"

  def system(*command)
    out, status = Open3.capture2e(*command.map(&:to_s))
    raise "#{command.join(" ")}: #{status}\n#{out}" unless status.success?
  end
end

# The keys of a `service` block that the formula uses.
class Service
  attr_reader :command, :kept_alive

  def initialize(formula) = @formula = formula
  def method_missing(name, *) = %i[opt_bin var].include?(name) ? @formula.public_send(name) : super
  def respond_to_missing?(name, *) = %i[opt_bin var].include?(name)
  def run(command) = @command = command.map(&:to_s)
  def keep_alive(value) = @kept_alive = value
end

def archive_of(formula)
  file = ARCHIVES/File.basename(formula.url)
  sum = Digest::SHA256.file(file).hexdigest
  raise "#{file}: the checksum is #{sum}, expected #{formula.sha256}" unless sum == formula.sha256
  file
end

load ARGV.fetch(0)
kind = Formula::FORMULAE.fetch(0)
formula = kind.new
raise "not a description" if kind.desc.empty? || kind.desc.length > 80
raise "not a URL: #{kind.homepage}" unless kind.homepage.start_with?("https://")
Dir.mktmpdir do |folder|
  archive = archive_of(kind)
  Dir.chdir(folder) do
    formula.system("tar", "-xzf", archive)
    formula.install
    formula.instance_eval(&kind.installed_test)
  end
end
service = Service.new(formula)
service.instance_eval(&kind.installed_service)
raise "the program of the service is not installed: #{service.command}" unless File.executable?(service.command.first)
# The caller starts the service with this command.
puts service.command
